"""Small made-up tables in the shape of TPC-H. Customers are the units; orders and lines belong to them by references."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd

import dither as dt

CUSTOMERS, ORDERS, PARTS, SUPPLIERS = 400, 2400, 60, 20
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
MODES = ("AIR", "AIR REG", "FOB", "MAIL", "RAIL", "SHIP", "TRUCK")
INSTRUCTIONS = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")
REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = ("BRAZIL", "CANADA", "CHINA", "EGYPT", "FRANCE", "GERMANY", "INDIA", "IRAN", "JAPAN", "PERU")
NATION_REGION = (1, 1, 2, 0, 3, 3, 2, 4, 2, 1)
TYPES = ("ECONOMY ANODIZED STEEL", "PROMO BRUSHED BRASS", "STANDARD POLISHED TIN")
BRANDS = ("Brand#12", "Brand#23", "Brand#34")
CONTAINERS = ("SM CASE", "MED BOX", "MED BAG", "LG CASE", "SM BOX")
FIRST, LAST = datetime.date(1992, 1, 1), datetime.date(1998, 12, 31)


def frames() -> dict[str, pd.DataFrame]:
    """Returns the eight tables, the same every time."""
    dice = np.random.default_rng(15)
    start = np.datetime64("1992-01-01")
    order_day = dice.integers(0, 2405, ORDERS)
    lines = dice.integers(1, 6, ORDERS)
    order = np.repeat(np.arange(ORDERS), lines)
    total = len(order)
    ship = order_day[order] + dice.integers(1, 122, total)
    commit, receipt = order_day[order] + dice.integers(30, 91, total), ship + dice.integers(1, 31, total)
    supplier = dice.integers(0, SUPPLIERS, total)
    phone = [f"{10 + dice.integers(0, 25)}-{dice.integers(100, 999)}-{dice.integers(100, 999)}" for _ in range(CUSTOMERS)]
    customer = np.where(np.arange(ORDERS) < 40, 0, dice.integers(0, CUSTOMERS * 2 // 3, ORDERS))  # one heavy, many without
    return {
        "region": pd.DataFrame({"r_regionkey": range(5), "r_name": REGIONS}),
        "nation": pd.DataFrame({"n_nationkey": range(10), "n_name": NATIONS, "n_regionkey": NATION_REGION}),
        "supplier": pd.DataFrame({"s_suppkey": range(SUPPLIERS), "s_nationkey": np.arange(SUPPLIERS) % 10}),
        "part": pd.DataFrame(
            {
                "p_partkey": range(PARTS),
                "p_name": [("forest green" if k % 4 == 0 else "plain red") + f" {k}" for k in range(PARTS)],
                "p_brand": [BRANDS[k % 3] for k in range(PARTS)],
                "p_type": [TYPES[k // 3 % 3] for k in range(PARTS)],
                "p_size": [1 + k % 15 for k in range(PARTS)],
                "p_container": [CONTAINERS[k % 5] for k in range(PARTS)],
            }
        ),
        "partsupp": pd.DataFrame(
            {
                "ps_partkey": np.repeat(np.arange(PARTS), SUPPLIERS),
                "ps_suppkey": np.tile(np.arange(SUPPLIERS), PARTS),
                "ps_supplycost": dice.integers(100, 100000, PARTS * SUPPLIERS) / 100,
            }
        ),
        "customer": pd.DataFrame(
            {
                "c_custkey": range(CUSTOMERS),
                "c_name": [f"Customer#{k:09}" for k in range(CUSTOMERS)],
                "c_nationkey": dice.integers(0, 10, CUSTOMERS),
                "c_phone": phone,
                "c_acctbal": dice.integers(-99999, 999999, CUSTOMERS) / 100,
                "c_mktsegment": np.array(SEGMENTS)[dice.integers(0, 5, CUSTOMERS)],
            }
        ),
        "orders": pd.DataFrame(
            {
                "o_orderkey": range(ORDERS),
                "o_custkey": customer,
                "o_totalprice": dice.integers(100000, 50000000, ORDERS) / 100,
                "o_orderdate": start + order_day,
                "o_orderpriority": np.array(PRIORITIES)[dice.integers(0, 5, ORDERS)],
                "o_shippriority": np.zeros(ORDERS, dtype=np.int64),
                "o_comment": np.array(["plain words", "special packages requests"])[dice.integers(0, 2, ORDERS)],
            }
        ),
        "lineitem": pd.DataFrame(
            {
                "l_orderkey": order,
                "l_partkey": dice.integers(0, PARTS, total),
                "l_suppkey": supplier,
                "l_quantity": dice.integers(1, 51, total),
                "l_extendedprice": dice.integers(90000, 10000000, total) / 100,
                "l_discount": dice.integers(0, 11, total) / 100,
                "l_tax": dice.integers(0, 9, total) / 100,
                "l_returnflag": np.array(["A", "N", "R"])[dice.integers(0, 3, total)],
                "l_linestatus": np.array(["F", "O"])[dice.integers(0, 2, total)],
                "l_shipdate": start + ship,
                "l_commitdate": start + commit,
                "l_receiptdate": start + receipt,
                "l_shipinstruct": np.array(INSTRUCTIONS)[dice.integers(0, 4, total)],
                "l_shipmode": np.array(MODES)[dice.integers(0, 7, total)],
            }
        ),
    }


def catalog(data: dict[str, pd.DataFrame]) -> dt.Catalog:
    """Declares customers as units, generous bounds, and the tables of goods as public."""
    day, cents = dt.between(FIRST, datetime.date(1999, 12, 31)), {"step": "0.01"}
    keys = {"region": "r_regionkey", "nation": "n_nationkey", "supplier": "s_suppkey", "part": "p_partkey"}
    public = {name: dt.Table(data[name], public=True, key=key) for name, key in keys.items()}
    whole = {"ps_partkey": dt.between(0, PARTS - 1), "ps_suppkey": dt.between(0, SUPPLIERS - 1)}
    costs = {**whole, "ps_supplycost": dt.between(0, 1000, **cents)}
    public["partsupp"] = dt.Table(data["partsupp"], public=True, columns=costs)
    customer = dt.Table(
        data["customer"],
        unit="c_custkey",
        key="c_custkey",
        max_rows=1,
        columns={
            "c_name": dt.column(),
            "c_nationkey": dt.between(0, 9),
            "c_phone": dt.column(),
            "c_acctbal": dt.between(-1000, 10000, **cents),
            "c_mktsegment": dt.values(*SEGMENTS),
        },
    )
    orders = dt.Table(
        data["orders"],
        unit={"column": "o_custkey", "references": "customer.c_custkey"},
        key="o_orderkey",
        max_rows=200,
        max_groups=100,
        columns={
            "o_totalprice": dt.between(0, 600000, **cents),
            "o_orderdate": day,
            "o_orderpriority": dt.values(*PRIORITIES),
            "o_shippriority": dt.values(0),
            "o_comment": dt.column(),
        },
    )
    lineitem = dt.Table(
        data["lineitem"],
        unit={"column": "l_orderkey", "references": "orders.o_orderkey"},
        max_rows=300,  # the heaviest customer has about 150 lines
        max_groups=80,
        columns={
            "l_partkey": dt.between(0, PARTS - 1),
            "l_suppkey": dt.between(0, SUPPLIERS - 1),
            "l_quantity": dt.between(0, 50),
            "l_extendedprice": dt.between(0, 105000, **cents),
            "l_discount": dt.between(0, "0.1", **cents),
            "l_tax": dt.between(0, "0.08", **cents),
            "l_returnflag": dt.values("A", "N", "R"),
            "l_linestatus": dt.values("F", "O"),
            "l_shipdate": day,
            "l_commitdate": day,
            "l_receiptdate": day,
            "l_shipinstruct": dt.values(*INSTRUCTIONS),
            "l_shipmode": dt.values(*MODES),
        },
    )
    tables = {**public, "customer": customer, "orders": orders, "lineitem": lineitem}
    return dt.Catalog(tables=tables, budget=dt.Budget(epsilon=10**8, delta="1e-6", least_epsilon="0.001"))
