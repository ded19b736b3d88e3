"""Jobs: runs that update an index, and the parsing of uploads, in processes of their own."""
