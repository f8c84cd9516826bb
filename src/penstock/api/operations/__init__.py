"""Operations on a table, each declared once: as a value whose fields are its arguments."""
