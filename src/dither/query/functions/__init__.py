"""The functions an expression may use: what each means, accepts and promises.

`base` states what an entry of the registry says and has the interval arithmetic; `registry` holds all entries, evaluates
expressions and infers what is publicly known of them. A new function is one entry in numbers, logic, casts, dates or text.
"""
