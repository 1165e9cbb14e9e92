"""What the header and the section of a chunk are made of, for those who take them apart again."""

SEPARATOR = " › "
TITLE_CHARS = 80
HEADING_CHARS = 60
