"""The server: analysts ask over HTTP, or with SQL tools, and never hold the data.

    settings    the [service] section of the catalog file, and options of `dither serve`
    accounts    people, tokens, sessions and projects, in a file of their own beside the ledger's key
    oidc        login through an OpenID Connect provider
    line        a bounded, fair queue with threads behind it; refuses before anything is planned or charged
    clock       when paid answers leave: ticks, a delay with a guarantee, its account
    effect      what one person can add to a time, measured for `dither serve --check`
    desk        THE path: who, what, terms -> quote, ask, stored answer. Every protocol ends here
    http/       HTTP: requests, problems, OpenAPI, login, metrics
    console/    pages for people
    wire/       the PostgreSQL protocol, for SQL tools
    running     processes, signals, TLS
    demo        `dither serve --demo`

Law: nothing here decides about privacy, but the clock about times. The curator plans, the ledger charges; the server says who
asks, how often, and when an answer leaves. It may import what users of dither import. Nobody but the command line imports it.
`import dither` does not need its packages.
"""
