"""The local model: everybody randomises their own value, and nobody needs to be trusted with the others'.

May import `exact`, `privacy`, `mechanisms`, `plots` (docs/architecture.md). Rule: the client and the aggregator share a `Survey`
and nothing else; what is not a well-formed report of that survey is refused and counted, and never stops a batch.

    survey      what both sides know: the question, epsilon, the randomiser        client      one person's report
    randomisers how a value becomes a report, and counts become estimates          aggregator  reports to estimates with margins
    hitters     the most frequent values of a large domain                         shuffle     what shuffled reports still reveal
    plain       the same client in plain Python, without any other file of dither  simulate    a whole survey, made up
"""
