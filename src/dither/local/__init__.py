"""The local model: everybody randomises their own value, and nobody needs to be trusted with the others'.

May import `exact`, `privacy`, `mechanisms`, `plots` (docs/architecture.md). Rule: the client and the aggregator share a
`LocalSurvey` and nothing else; what is not a well-formed report of that survey is refused and counted, and never stops a
batch.

    survey        what both sides know: the question, epsilon, the randomiser
    client        one person's report, drawn once             plain         the same in plain Python, one file
    aggregator    reports to estimates with margins           randomisers   a value to a report, counts to estimates
    hitters       frequent values of a large domain           shuffle       what shuffled reports still reveal
    chances       coins whose chances keep the price          simulate      a whole survey, made up
"""
