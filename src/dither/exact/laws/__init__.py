"""The laws (distributions) that noise is drawn from. Each class states its probabilities in closed form.

    geometric     TwoSided, OneSided, Cut        categorical   Categorical            derived   Moved, Clamped, Given, Finite
    gaussian      Gaussian                       coins         Flat, Coin, ExpCoin    joint     Product, Branching
    exponential   Exponential, on real numbers   base          Law, Piece

    TwoSided(s)               Pr[k] = (1 - a) / (1 + a) a^|k|          a = exp(-1/s), all whole k
    OneSided(s)               Pr[k] = (1 - a) a^k                      k >= 0
    Cut(s, n)                 Pr[k] proportional to a^k                0 <= k <= n
    Gaussian(v)               Pr[k] proportional to exp(-k^2 / 2v)     all whole k
    Categorical(w)            Pr[i] proportional to exp(w_i)           0 <= i < len(w)
    Flat(n)                   Pr[k] = 1/n                              0 <= k < n
    Coin(p)                   Pr[1] = p                                p rational
    ExpCoin(x)                Pr[1] = exp(-x)                          x >= 0 rational
    Moved(law, by)            X + by
    Clamped(law, low, high)   min(max(X, low), high)
    Given(law, above)         X, given that X > above
    Finite(table)             Pr[k] = table[k]
    Product(laws)             independent draws, as one number
    Branching(law, laws)      a draw, then one from the law that it decides, as one number

Scales run from 1/1000 to 10^12, variances from 10^-6 to 10^24, all rational.
"""
