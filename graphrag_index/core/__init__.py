"""What both packages stand on."""
