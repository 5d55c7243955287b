"""The server: analysts ask over HTTP and never hold the data.

    settings    the [service] section of the catalog file, and options of `dither serve`
    accounts    people, tokens, sessions and projects, in a file of their own beside the ledger's key
    line        a bounded, fair queue with threads behind it; refuses before anything is planned or charged
    desk        THE path: who, what, terms -> quote, ask, stored answer. Every protocol ends here
    http/       HTTP: requests, problems, OpenAPI, login, metrics
    console/    pages for people
    running     processes, signals, TLS
    demo        `dither serve --demo`

Law: nothing here decides about privacy. The curator plans, the ledger charges; the server says who asks, and how often. It may
import what users of dither import, and nobody but the command line imports it. `import dither` does not need its packages.
"""
