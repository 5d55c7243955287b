"""The PostgreSQL protocol: SQL tools ask as if this were a PostgreSQL server.

    protocol    bytes and messages; imports nothing of dither
    scram       proving a token without sending it
    lexing      words of a statement
    routing     what a statement is: a question, a setting, a cursor, or something for the twin
    terms       `SET dither.epsilon = 0.1` and the other settings of a connection
    asking      questions and quotes at the desk; answers as typed rows; errors as PostgreSQL's fields
    session     prepared statements, portals, cursors: what a connection remembers
    link        one connection to the twin, whose messages are passed on unchanged
    twin        an empty PostgreSQL with the declared tables, for everything that tools ask about the catalog
    backend     one connection, message by message
    listening   the port: TLS, limits, cancelling, stopping

Law: a question is asked at the desk and nowhere else. Looking at a question (Parse, Describe, EXPLAIN) never runs it and never
charges. The twin has no rows, so a statement that is sent the wrong way learns nothing.
"""
