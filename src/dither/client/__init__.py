"""The client: asks a server that holds the data, and believes it as little as it can. `dt.connect` opens one.

May import: `exact`, `privacy`, `catalog`, `query`, `planning`, `ledger` (records and receipts), `answer`, `answers`,
`finish`, `session` (what was paid), `standing`; no engine and no curator. Law: what a question costs and how wide its margins
are is computed here, from the public catalog; an answer whose receipt says anything else is refused.

remote      connect, Remote: the methods of `dt.open`, over HTTP
transport   requests and their problems; TLS is verified, and nothing but loopback goes without it
planner     plans questions as the curator does
encoding    questions and terms as JSON
logins      tokens that `dither login` stored, for their owner only
known       pinned keys and the newest heads, in one file of the user: a witness against rollback
received    answers that only the server can plan, as it sent them
"""
