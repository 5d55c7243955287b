"""Retail baskets: what customers buy, with customers who buy very much.

Three tables: customers, baskets of customers, items of baskets. The person who is protected is the customer, two references
away from an item. A few resellers buy hundreds of items; `max_rows` and `max_groups` limit them.
"""

# %%
import duckdb
import numpy as np
import pyarrow as pa

import dither as dt

dice = np.random.default_rng(5)  # made-up customers, not noise
CUSTOMERS = 8_000
AISLES = ["bread", "dairy", "fruit", "meat", "sweets", "drinks"]
often = dice.geometric(0.25, CUSTOMERS)
often[:20] = dice.integers(80, 200, 20)  # resellers
owner = np.repeat(np.arange(CUSTOMERS), often)
size = dice.geometric(0.2, len(owner))
basket = np.repeat(np.arange(len(owner)), size)
aisle = dice.choice(AISLES, len(basket), p=[0.25, 0.2, 0.2, 0.1, 0.15, 0.1])
price = np.round(dice.lognormal(1, 0.7, len(basket)), 2)
customers = pa.table({"customer": np.arange(CUSTOMERS), "city": dice.choice(["Arl", "Bex", "Cor"], CUSTOMERS)})
baskets = pa.table({"basket": np.arange(len(owner)), "customer": owner})
items = pa.table({"basket": basket, "aisle": aisle, "price": price})

# %%
tables = {
    "customers": dt.Table(customers, unit="customer", key="customer", columns={"city": dt.values("Arl", "Bex", "Cor")}),
    "baskets": dt.Table(
        baskets, unit={"column": "customer", "references": "customers.customer"}, key="basket", max_rows=8, max_groups=1
    ),
    "items": dt.Table(
        items,
        unit={"column": "basket", "references": "baskets.basket"},  # through the basket to the customer
        max_rows=10,
        max_groups=6,
        columns={"aisle": dt.values(*AISLES), "price": dt.between(0, 20, step="0.01")},
    ),
}
shop = dt.open(dt.Catalog(tables, dt.Budget(epsilon=3)), ledger=":memory:")

# %% [markdown]
# ## Mean price by aisle
# A mean forgives bounds: a customer with 60 items of an aisle is scaled down to 10, with the same mean price.

# %%
prices = shop.ask("SELECT aisle, AVG(price) AS price FROM items GROUP BY aisle", epsilon=1)
exact = dict(duckdb.sql("SELECT aisle, AVG(price) FROM items GROUP BY aisle").fetchall())
for (name, private), margin in zip(prices.rows, prices.margins()["price"], strict=True):
    print(f"{name:8} {private:6.2f} ± {margin:.2f}   exact {exact[name]:.2f}")

# %% [markdown]
# ## Items per basket
# Count inside each basket first, then take the mean. Inside a basket nothing is noisy, because nobody sees it.

# %%
per_basket = """SELECT AVG(CLAMP(n, 0, 20)) AS items FROM (SELECT basket, COUNT(*) AS n FROM items GROUP BY basket) t"""
size_of = shop.ask(per_basket, epsilon="0.5", max_rows=8, max_groups=1)
((true,),) = duckdb.sql("SELECT AVG(LEAST(n, 20)) FROM (SELECT basket, COUNT(*) AS n FROM items GROUP BY basket)").fetchall()
print(f"items per basket: {size_of['items'][0]:.2f} ± {size_of.margins()['items'][0]:.2f}, exact {true:.2f}")

# %% [markdown]
# ## Who buys meat?
# A question about people: each customer counts once, so there is little noise and nothing to bound.

# %%
buyers = """SELECT c.city, COUNT(*) AS customers FROM customers c
    WHERE EXISTS (SELECT 1 FROM items i JOIN baskets b USING (basket) WHERE b.customer = c.customer AND i.aisle = 'meat')
    GROUP BY c.city"""
meat = shop.ask(buyers, epsilon="0.5")
plain = dict(duckdb.sql(buyers).fetchall())
for (city, private), margin in zip(meat.rows, meat.margins()["customers"], strict=True):
    print(f"{city}: {private} ± {margin:.0f}, exact {plain[city]}")

# %%
# Mean price by aisle, with error bars
figure = prices.plot("retail_baskets.png")
print(shop.budget)
shop.close()
