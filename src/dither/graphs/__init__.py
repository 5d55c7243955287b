"""Graphs: counts of edges, degrees, triangles and stars, private for one edge or for one node.

May import `exact`, `privacy`, `mechanisms`, `plots`, `ledger/receipts`, `catalog`, `query`, `planning` (docs/architecture.md).
Whole numbers until noise. How many edges a graph has is private; under node privacy the number of nodes is private too, so no
text, error or price depends on either.

    asking      the questions as methods        questions   what each counts, its noise and its price
    graph       dt.Graph: in memory             plan        a question about a table of edges of a catalog
    reading     edges from lists, arrays, matrices and networkx
    counts      edges, degrees, groups: what one edge changes
    shape       triangles, stars and common neighbours      smooth      noise in proportion to what one edge changes nearby
    projection  a bound on degrees, for node privacy        programme   triangles under node privacy
    choice      chooses a bound on degrees privately
    answer      the noisy number with its margin and price, and what a bound leaves out
"""
