"""Files that were damaged at random, given to every decoder: none may hang, crash, or raise errors of others."""
