"""Index folders and answer queries with relevant segments: runs of adjacent chunks as long as the evidence says."""
