"""Lists the faults that tests must find, for scripts/mutants.py, along the path of a question from its text to its price.

If the code changes on purpose, the outcome "stale" shows which texts to update.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """One fault: in `file` (under src/dither), `old` becomes `new`; `test` must fail then."""

    name: str
    fault: str
    file: str
    old: str
    new: str
    test: str


QUERY = (
    Mutant(
        "list-narrowed-by-other-columns",
        "a free list takes conditions on columns that it does not list",
        "query/resolve/listing.py",
        "decided = len(names) == 1 and any(names <= each for each in used)",
        "decided = len(names) == 1",
        "tests/sql/test_listing.py::test_what_only_rows_decide_is_refused_with_the_private_form",
    ),
    Mutant(
        "having-keeps-null",
        "HAVING keeps groups where its condition is NULL",
        "planning/outputs.py",
        "if holds(rows[i]) is True]",
        "if holds(rows[i]) is not False]",
        "tests/planning/test_finish.py::test_having_drops_groups_where_it_is_null",
    ),
    Mutant(
        "order-puts-null-first",
        "ORDER BY puts groups without a value first",
        "planning/outputs.py",
        "places = known + [i for i in places if value(rows[i]) is None]",
        "places = [i for i in places if value(rows[i]) is None] + known",
        "tests/planning/test_finish.py::test_order_by_puts_null_last_either_way",
    ),
    Mutant(
        "comparison-turned-wrongly",
        "a <= b becomes b > a where the sides are exchanged",
        "query/normal.py",
        '_SWAPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", ',
        '_SWAPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "gt", ',
        "tests/sql/test_normal.py::test_a_comparison_turned_round_means_the_same",
    ),
    Mutant(
        "denial-keeps-the-border",
        "NOT (a < b) becomes a > b",
        "query/normal.py",
        '_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", ',
        '_NEGATED = {"eq": "ne", "ne": "eq", "lt": "gt", ',
        "tests/sql/test_normal.py::test_a_denied_comparison_means_the_opposite",
    ),
    Mutant(
        "keys-from-private-rows",
        "values of private tables are looked up on opening and become public keys",
        "engines/duckdb/sources.py",
        "        if not table.public:\n            return table\n",
        "",
        "tests/engines/test_public_values.py::test_private_values_are_never_looked_up",
    ),
    Mutant(
        "narrowed-as-if-clipped",
        "conditions narrow keys as if no row lay outside its bounds",
        "query/resolve/narrowing.py",
        "    if not known.clipped or _is_empty(free):\n        return ()\n",
        "    return ()\n",
        "tests/sql/test_narrowing.py::test_conditions_narrow_keys[age < 24-age % 10-10]",
    ),
    Mutant(
        "join-of-strangers",
        "two private tables are joined without looking at their units",
        "query/resolve/joins.py",
        "    if left.private and right.private:\n        check_units(left, right, pairs, catalog, span)\n",
        "    if left.private and right.private:\n        pass\n",
        "tests/sql/test_joins.py::test_rows_of_different_people_are_not_joined",
    ),
    Mutant(
        "join-multiplies-rows",
        "a join may multiply rows that are protected one by one",
        "query/resolve/joins.py",
        "        if not at_most_one(pairs, index, left, right):\n",
        "        if False:\n",
        "tests/sql/test_joins.py::test_a_join_does_not_multiply_rows_that_are_protected_one_by_one",
    ),
    Mutant(
        "unit-as-key",
        "GROUP BY takes a key that is made from the unit",
        "query/resolve/aggregates.py",
        "        _check_unit(key, known, source)\n",
        "",
        "tests/sql/test_unit_keys.py::test_a_key_made_of_the_unit_is_refused",
    ),
)

PLANNING = (
    Mutant(
        "one-group-believed",
        "a key with one value per person is believed, and the engine lets a person with two rows into two groups",
        "planning/plan.py",
        "bounding.max_groups if question.by_unit and query.keys else None,",
        "bounding.max_groups if question.by_unit and query.keys and bounding.max_groups > 1 else None,",
        "tests/sql/test_one_group.py::test_a_person_in_two_groups_counts_in_one",
    ),
    Mutant(
        "replacement-counts-once",
        "someone who is replaced moves a vector of sums by one person's worth, not two",
        "planning/sensitivity.py",
        "return self.max_groups * self.max_rows * row * self.neighbours.changes",
        "return self.max_groups * self.max_rows * row",
        "tests/planning/test_choose.py::test_who_is_replaced_moves_several_cells_by_both_worths",
    ),
    Mutant(
        "replacement-touches-one-side",
        "someone who is replaced touches only the groups they leave",
        "planning/sensitivity.py",
        "most = self.max_groups * self.neighbours.changes",
        "most = self.max_groups",
        "tests/planning/test_choose.py::test_who_is_replaced_touches_the_groups_they_leave_and_those_another_enters",
    ),
    Mutant(
        "signed-squares",
        "a signed sum moves by both people's worth, and is priced for squares added one by one",
        "planning/sensitivity.py",
        "(changes**2 if signed else changes)",
        "changes",
        "tests/planning/test_choose.py::test_signed_worths_of_two_people_add_up_before_they_are_squared",
    ),
    Mutant(
        "share-rounded-down",
        "shares of a price are rounded down, and what is left is charged for nothing",
        "planning/price.py",
        "return tuple(price * Fraction(part, sum(parts)) for part in parts)",
        "return tuple(price * Fraction(part, max(_PARTS, sum(parts))) for part in parts)",
        "tests/planning/test_split.py::test_shares_add_up_exactly",
    ),
    Mutant(
        "weight-by-outputs",
        "a release that more outputs are read from gets a larger share of the price",
        "planning/releases/base.py",
        "                return place\n        self.releases.append(release)",
        '                heavier = type("Heavier", (type(other),), {"weight": other.weight + 1})\n'
        '                object.__setattr__(other, "__class__", heavier)\n'
        "                return place\n        self.releases.append(release)",
        "tests/planning/test_split.py::test_a_release_weighs_the_same_however_many_outputs_are_read_from_it",
    ),
    Mutant(
        "margin-for-nothing",
        "the margin of a quantile is chosen from the rows, and not paid for",
        "planning/releases/quantile.py",
        "return total([self.mechanism.loss(), self.width.loss()]).group(self.steps)",
        "return total([self.mechanism.loss()]).group(self.steps)",
        "tests/planning/test_own_curve.py::test_keys_and_quantiles_have_their_price_apart",
    ),
    Mutant(
        "runs-off-by-one",
        "a step beside an occupied bin has the bin's score, so runs do not have the law of all steps",
        "planning/releases/ranks.py",
        "starts[1::2], starts[2::2] = bins, bins + 1",
        "starts[1::2], starts[2::2] = bins, bins + 2",
        "tests/planning/test_ranks.py::test_runs_are_the_scores_of_all_steps",
    ),
    Mutant(
        "margin-without-slack",
        "the interval of a quantile ends at the quantile's own rank, and often misses it",
        "planning/releases/quantile.py",
        "return math.ceil(reach) + SCALE * self.p.denominator",
        "return SCALE * self.p.denominator",
        "tests/planning/test_ranks.py::test_the_margin_holds_every_quantile_at_99_percent",
    ),
    Mutant(
        "release-for-each-output",
        "what two outputs are read from is released, and paid for, twice",
        "planning/releases/base.py",
        "if other.measure == release.measure and other.parameters == release.parameters:",
        "if other is release:",
        "tests/planning/test_split.py::test_a_release_weighs_the_same_however_many_outputs_are_read_from_it",
    ),
    Mutant(
        "delta-share-rounded-up",
        "the delta that a question gets by itself is rounded up, so the shares add up to more than there is",
        "planning/terms.py",
        "math.floor(share * _DIGITS)",
        "math.ceil(share * _DIGITS)",
        "tests/planning/test_terms.py::test_a_delta_that_nobody_wrote_is_rounded_down",
    ),
    Mutant(
        "sum-bounds-swapped",
        "SUM is read with the lower bound in place of the upper",
        "planning/releases/sums.py",
        "Term(place, 0, (q.low + q.step * q.steps) / q.steps), Term(place, 1, q.low / q.steps)",
        "Term(place, 0, q.low / q.steps), Term(place, 1, (q.low + q.step * q.steps) / q.steps)",
        "tests/planning/test_finish.py::test_a_sum_is_read_from_its_lower_to_its_upper_bound",
    ),
    Mutant(
        "mean-interval-swapped",
        "the ends of a mean's interval are exchanged",
        "planning/releases/sums.py",
        "np.maximum(start + width * low - slack, start), np.minimum(start + width * high + slack, start + width)",
        "np.maximum(start + width * high - slack, start), np.minimum(start + width * low + slack, start + width)",
        "tests/planning/test_finish.py::test_a_mean_lies_between_its_lower_and_its_upper_end",
    ),
    Mutant(
        "shared-cells-apart",
        "a difference of two counts adds up the noise of a cell that both have, instead of taking it out",
        "planning/forms.py",
        'both = parts[0] + parts[1] * Fraction(1 if call.name == "add" else -1)',
        "both = parts[0] + parts[1] * Fraction(1)",
        "tests/planning/test_forms.py::test_a_difference_of_counts_has_the_noise_of_the_null_cell",
    ),
    Mutant(
        "slack-forgotten",
        "the margin of a mean leaves out what its grid may move it by",
        "planning/releases/sums.py",
        "np.maximum(np.abs(high - share), np.abs(share - low)) + float(self.slack)",
        "np.maximum(np.abs(high - share), np.abs(share - low))",
        "tests/planning/test_margins.py::test_the_grid_is_part_of_the_margin",
    ),
    Mutant(
        "doubt-forgotten",
        "a margin that counts rows leaves no doubt for their number",
        "planning/releases/base.py",
        "wide = self.half(noises, confidence + doubt)",
        "wide = self.half(noises, confidence)",
        "tests/planning/test_margins.py::test_a_margin_that_also_counts_rows_keeps_part_of_the_doubt_for_them",
    ),
    Mutant(
        "cut-apart",
        "each number cuts a person by its own rows, so quotients are wrong",
        "planning/releases/base.py",
        "return self._added_rows if self.may_be_cut else own",
        "return own",
        "tests/planning/test_one_factor.py::test_every_measure_counts_the_same_rows",
    ),
    Mutant(
        "null-cell-forgotten",
        "COUNT(*) beside AVG(x) leaves out the rows where x is NULL",
        "planning/releases/count.py",
        "return noise.of.cells if self.nulls else 2",
        "return 2",
        "tests/planning/test_finish.py::test_a_count_of_rows_includes_those_whose_value_is_null",
    ),
    Mutant(
        "order-not-undone",
        "a stored answer is read in the order of its text, not of the question",
        "planning/records.py",
        "return _arrange(noisy, _inverse(self.keys), _inverse(self.releases))",
        "return _arrange(noisy, _inverse(self.keys), self.releases)",
        "tests/planning/test_identity.py::test_the_order_of_a_stored_answer_is_undone_when_it_is_read",
    ),
    Mutant(
        "identity-without-max-rows",
        "questions that differ in max_rows alone are taken for the same",
        "planning/records.py",
        '{"cells": "cells", "max_rows": "max_rows", "where": "where"}',
        '{"cells": "cells", "where": "where"}',
        "tests/planning/test_identity.py::test_every_field_that_counts_is_in_the_tables",
    ),
    Mutant(
        "identity-without-keys",
        "questions that group by other keys are taken for the same",
        "planning/records.py",
        '        "keys": keys,\n',
        "",
        "tests/planning/test_identity.py::test_other_keys_with_the_same_values_are_another_question",
    ),
    Mutant(
        "keys-and-noise-both-get-delta",
        "discovered keys get all of delta beside Gaussian noise that has half of it",
        "planning/price.py",
        "threshold = _threshold(parts[-1], delta, bounding) if discover else None",
        "threshold = _threshold(parts[-1], price.delta, bounding) if discover else None",
        "tests/planning/test_choose.py::test_discovered_keys_and_gaussian_noise_get_half_of_delta_each",
    ),
    Mutant(
        "delta-not-halved",
        "Gaussian noise takes all of delta although keys need half of it",
        "planning/price.py",
        "return price.delta / 2 if discover else price.delta",
        "return price.delta",
        "tests/planning/test_choose.py::test_discovered_keys_and_gaussian_noise_get_half_of_delta_each",
    ),
)

PRIVACY = (
    Mutant(
        "norm-off-by-one",
        "rounding to a grid moves each coordinate by one step more than the norm counts",
        "mechanisms/norms.py",
        "return math.ceil(self.value / grid) + (self.dimension or 1) - 1\n",
        "return math.ceil(self.value / grid) + (self.dimension or 1) - 2\n",
        "tests/mechanisms/test_norms.py::test_the_extra_steps_of_l1_are_reached",
    ),
    Mutant(
        "norm-rounds-down",
        "a coordinate that moves by half a step is said not to move",
        "mechanisms/norms.py",
        "return _whole_move(self.each) if grid is None else math.ceil(self.each / grid)",
        "return _whole_move(self.each) if grid is None else math.floor(self.each / grid)",
        "tests/mechanisms/test_norms.py::test_no_pair_of_vectors_beats_the_bounds",
    ),
    Mutant(
        "either-line-by-halves",
        "a budget's line holds if one of its two sums does",
        "privacy/filters.py",
        "return all(cap is None or have * cap.denominator <= cap.numerator * used.unit for have, cap in pairs)",
        "return any(cap is not None and have * cap.denominator <= cap.numerator * used.unit for have, cap in pairs)",
        "tests/privacy/test_either.py::test_a_line_holds_only_while_both_of_its_sums_do",
    ),
    Mutant(
        "two-deltas",
        "each line of the either-or rule is given the whole delta",
        "privacy/filters.py",
        "return cls(most, allowed / 2, allowed / 4, allowed / 4, largest_rho(most, allowed / 4))",
        "return cls(most, allowed, allowed / 2, allowed / 2, largest_rho(most, allowed / 2))",
        "tests/privacy/test_either.py::test_the_layout_costs_delta_and_its_rho_is_certified",
    ),
    Mutant(
        "unstated-rho-is-free",
        "a release without a rho costs the sum of rho nothing",
        "privacy/filters.py",
        "        if self.rho is not None and used.unstated:\n            return False\n",
        "",
        "tests/privacy/test_either.py::test_a_release_without_rho_closes_the_second_line",
    ),
    Mutant(
        "charge-rounded-down",
        "charges are rounded down to the ledger's grid",
        "privacy/filters.py",
        "return -(-value.numerator * GRID // value.denominator)",
        "return value.numerator * GRID // value.denominator",
        "tests/privacy/test_either.py::test_a_crumb_never_vanishes",
    ),
    Mutant(
        "parallel-takes-the-smallest",
        "releases side by side cost the cheapest of them",
        "privacy/composition.py",
        "return Pure(max(loss.epsilon(0) for loss in losses), max(loss.zcdp().rho for loss in losses))",
        "return Pure(min(loss.epsilon(0) for loss in losses), max(loss.zcdp().rho for loss in losses))",
        "tests/privacy/test_combine.py::test_parallel_is_the_largest_and_replacing_doubles_it",
    ),
)

ENGINES = (
    Mutant(
        "max-rows-not-enforced",
        "SQL engines add up all rows of one person, however many",
        "engines/sql/work.py",
        'return f"CAST(CASE WHEN {found.rows} <= {max_rows} THEN {share} ELSE {less} END AS {kind})"',
        'return f"CAST({share} AS {kind})"',
        "tests/engines/test_bounding.py::test_one_person_counts_no_more_than_max_rows",
    ),
    Mutant(
        "max-groups-not-enforced",
        "SQL engines count one person in all of their groups",
        "engines/sql/relations.py",
        "    if not needs_choice(work) or work.max_groups is None:\n",
        "    if True:\n",
        "tests/engines/test_bounding.py::test_one_person_is_in_no_more_than_max_groups",
    ),
    Mutant(
        "open-quotes-swallow-lines",
        "a quote that stays open takes other people's lines into one cell, in files that Python reads",
        "engines/duckdb/delimited.py",
        "        strict=True,",
        "        strict=False,",
        "tests/catalog/test_as_it_comes.py::test_an_open_quote_is_refused_by_both_readers",
    ),
    Mutant(
        "one-group-too-many",
        "DuckDB keeps one group more than max_groups where there are many",
        "engines/duckdb/dialect.py",
        'FROM b SEMI JOIN o USING (u)) WHERE place <= {most})"',
        'FROM b SEMI JOIN o USING (u)) WHERE place <= {most + 1})"',
        "tests/engines/test_bounding.py::test_one_person_is_in_no_more_than_max_groups",
    ),
    Mutant(
        "reference-max-rows-not-enforced",
        "the reference engine adds up all rows of one person",
        "engines/reference.py",
        "heavy = by_unit and len(rows) > measure.max_rows",
        "heavy = False",
        "tests/engines/test_reference_by_hand.py::test_heavy_units_are_averaged_down_towards_zero",
    ),
    Mutant(
        "pairs-of-other-groups",
        "what is left out is counted in other groups than the estimate says",
        "engines/sql/joint.py",
        " and all(whole)",
        "",
        "tests/engines/test_joint.py::test_a_key_whose_fractions_would_be_null_is_not_shared",
    ),
    Mutant(
        "nan-passes-where",
        "what is not a number passes a condition such as x > 1",
        "engines/sql/relations.py",
        'if condition.name in ("gt", "ge") else ""',
        'if False else ""',
        "tests/engines/test_conditions.py::test_what_is_not_a_number_passes_no_comparison_with_one[gt]",
    ),
    Mutant(
        "nan-kept",
        "what is not a number is clipped to the upper bound instead of being NULL",
        "engines/sql/work.py",
        'f"{x.text} <= {dialect.double(math.inf)}")',
        '"TRUE")',
        "tests/engines/test_duckdb.py::test_what_is_not_a_number_is_null_and_not_a_bound",
    ),
)

LEDGER = (
    Mutant(
        "quota-forgotten",
        "an analyst spends more than the quota",
        "ledger/rules.py",
        "    if most.rule(after) is None:\n",
        "    if False:\n",
        "tests/ledger/test_ledger.py::test_a_quota_is_for_each_analyst[memory]",
    ),
    Mutant(
        "cap-forgotten-in-quotes",
        "a quote forgets the cap of one question, which reserving keeps",
        "ledger/rules.py",
        'texts | {"catalog": wanted, "caps": caps}',
        'texts | {"catalog": state.Terms.of(declaration)._replace(per_query=None).text(), "caps": caps}',
        "tests/journey/test_ledger_path.py::test_one_question_has_a_cap",
    ),
    Mutant(
        "replay-not-counted",
        "an answer that is given again does not count in a second analyst's quota",
        "ledger/ledger.py",
        "        inside.use(request.analyst, shown.used)\n        record = Replayed",
        "        record = Replayed",
        "tests/ledger/test_settling.py::test_a_replay_counts_once_for_each_new_analyst[memory]",
    ),
    Mutant(
        "seal-not-checked",
        "sums that somebody edited without the key are believed",
        "ledger/state.py",
        "if not isinstance(seal, str) or not key.is_sealed(self._text(), seal):",
        "if not isinstance(seal, str):",
        "tests/ledger/test_seal.py::test_what_is_put_back_alone_stops_the_ledger[memory-total]",
    ),
    Mutant(
        "commit-of-a-made-up-reservation",
        "an answer is committed under a reservation that the ledger never made",
        "ledger/ledger.py",
        "            if reservation in self._reservations:\n                return reservation\n",
        "            return reservation\n",
        "tests/ledger/test_settling.py::test_a_reservation_that_was_made_up_settles_nothing[memory]",
    ),
    Mutant(
        "commit-after-the-lease",
        "an answer is committed although its reservation was given up",
        "ledger/ledger.py",
        "        if leases.pop(reservation.number, None) is None:\n",
        "        if leases.pop(reservation.number, None) is False:\n",
        "tests/ledger/test_flight.py::test_a_lease_that_runs_out_is_taken_over_and_the_old_holder_cannot_commit[memory]",
    ),
    Mutant(
        "reservation-not-counted",
        "a reserved price is not in the sums before its answer is kept",
        "ledger/ledger.py",
        '        inside.put("total", state.encode_sums(admitted.total))\n',
        "",
        "tests/ledger/test_ledger.py::test_what_was_reserved_counts_before_it_is_answered[memory]",
    ),
    Mutant(
        "cancel-after-the-engine",
        "a price is given back although the engine was called",
        "ledger/reservations.py",
        "            if cancel and self._touched:\n",
        "            if False:\n",
        "tests/ledger/test_settling.py::test_a_question_that_reached_the_engine_is_not_cancelled[memory]",
    ),
)

SESSION = (
    Mutant(
        "compute-before-reserve",
        "the engine runs before the price is reserved",
        "session.py",
        "        stored = self.ledger.reserve(attempt)\n",
        "        early = compute()\n        compute = lambda: early\n        stored = self.ledger.reserve(attempt)\n",
        "tests/journey/test_curator.py::test_a_question_beyond_the_budget_never_reaches_the_engine",
    ),
    Mutant(
        "show-before-commit",
        "the answer is shown before it is on the disk",
        "session.py",
        "                paid = self._paid(program, attempt, compute)\n                return show(paid)\n",
        "                shown: list[Shown] = []\n\n"
        "                def early() -> Sequence[Noisy]:\n"
        "                    noisy = compute()\n"
        "                    shown.append(show(Paid(noisy, None, None, request, None)))  # type: ignore[arg-type]\n"
        "                    return noisy\n\n"
        "                paid = self._paid(program, attempt, early)\n"
        "                return shown[0] if shown else show(paid)\n",
        "tests/journey/test_program.py::test_an_answer_is_shown_after_it_is_kept",
    ),
    Mutant(
        "choice-not-charged",
        "the histogram that chooses bounds is not part of the charge",
        "planning/auto.py",
        "first.epsilon + max(one.epsilon for one in each),",
        "max(one.epsilon for one in each),",
        "tests/planning/test_auto.py::test_the_charge_covers_every_path_in_every_component",
    ),
    Mutant(
        "beside-the-choice-not-charged",
        "the estimate of clipped values that runs beside a choice of bounds is not part of the charge",
        "planning/auto.py",
        "charge([self.histogram, *self.beside])",
        "charge([self.histogram])",
        "tests/planning/test_auto.py::test_the_charge_covers_every_path_in_every_component",
    ),
    Mutant(
        "cheapest-candidate-charged",
        "the candidate with the smallest rho is charged, not the largest",
        "planning/auto.py",
        "rhos[0] + max(rhos[1:])",
        "rhos[0] + min(rhos[1:])",
        "tests/planning/test_auto.py::test_the_charge_covers_every_path_in_every_component",
    ),
    Mutant(
        "price-given-back-after-the-engine",
        "a question that failed in the engine gets its price back",
        "session.py",
        "        attempt.touch()\n",
        "",
        "tests/journey/test_program.py::test_a_price_is_not_given_back_after_the_engine_was_called",
    ),
    Mutant(
        "files-not-looked-at-again",
        "files that changed while the price was reserved are read",
        "session.py",
        "        self.check_unchanged()  # again, because reserving takes time\n",
        "",
        "tests/journey/test_program.py::test_files_that_change_while_the_price_is_reserved_are_not_read",
    ),
)

MUTANTS = (*QUERY, *PLANNING, *PRIVACY, *ENGINES, *LEDGER, *SESSION)
