"""Lists the tests for every sentence of PITFALLS, and checks that sentences and tests exist.

The sentences are shortened; their order is that of the list. A test is named by its file and its function; the first one is
in this folder, further ones may be where the part itself is tested.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
HERE = Path(__file__).parent
PITFALLS: dict[str, dict[str, str]] = {
    "Numbers": {
        "a float sample added to a float answer": "test_numbers.py test_low_bits_do_not_tell_answers_apart",
        "float sums in data order": "test_engine_numbers.py test_sums_do_not_depend_on_the_order_of_rows",
        "integer sums that wrap": "test_engine_numbers.py test_integer_sums_do_not_wrap",
        "NaN that survives a clamp": (
            "test_engine_numbers.py test_nan_does_not_survive_a_clamp_and_infinities_end_at_the_bounds; "
            "audit/test_own.py test_a_planted_bug_is_found_and_made_small"
        ),
        "inf": "test_engine_numbers.py test_nan_does_not_survive_a_clamp_and_infinities_end_at_the_bounds",
        "-0": "test_engine_numbers.py test_minus_zero_is_zero",
        "float32 columns treated as float64": "test_engine_numbers.py test_float32_columns_are_taken_at_their_own_value",
        "squares near 2^50": "test_engine_numbers.py test_squares_of_centred_values_near_two_to_the_fifty",
        "bounds that overflow": "test_engine_numbers.py test_bounds_that_overflow_are_refused_before_anything_is_charged",
        "zero, denormal or overflowing scales": (
            "test_numbers.py test_scales_that_are_zero_denormal_or_overflow_are_refused_before_anything_is_drawn"
        ),
        "calibration rounded the wrong way": "test_numbers.py test_gaussian_calibration_is_rounded_the_right_way",
        "textbook sigma at epsilon > 1": "test_numbers.py test_textbook_sigma_at_large_epsilon_would_not_pass_that_check",
    },
    "Sensitivity": {
        "variance with [-B, B] under-noised": "test_sensitivity.py test_variance_around_zero_is_not_under_noised",
        "GROUP BY columns not clamped": "test_sensitivity.py test_group_by_columns_are_clamped_too",
        "a group of k rows changes by 2k when replaced": (
            "test_sensitivity.py test_a_group_of_at_most_k_rows_changes_by_2k_when_a_person_is_replaced"
        ),
        "bounding, then merging groups": "test_sensitivity.py test_bounding_then_merging_groups_does_not_keep_the_old_bound",
        "parallel composition under replacement": (
            "test_sensitivity.py test_parallel_composition_under_replacement_has_its_factor_two"
        ),
        "noisy-max returning its value": (
            "test_sensitivity.py test_the_largest_group_with_its_value_costs_the_whole_histogram; "
            "mechanisms/test_noisy_max.py test_returning_the_winning_value_as_well_costs_n_epsilon_over_two"
        ),
        "a mean divided by a count that includes NaN": (
            "test_sensitivity.py test_a_mean_is_not_divided_by_a_count_that_includes_nan"
        ),
        "noise scale taken from the exact count": "test_sensitivity.py test_no_noise_scale_is_taken_from_the_data",
        "COUNT on a non-null column released exactly": (
            "test_sensitivity.py test_a_count_of_a_column_declared_not_null_is_not_exact_and_not_free"
        ),
        "LEAST and GREATEST skip NULL": "test_sensitivity.py test_clipping_does_not_turn_null_into_a_bound",
    },
    "Keys and thresholds": {
        "rare group keys shown": "test_keys.py test_rare_group_keys_are_not_shown",
        "delta of a threshold off by one": "test_keys.py test_the_delta_of_a_threshold_is_not_off_by_one",
        "formula of one noise, samples of another": "test_keys.py test_threshold_and_samples_are_of_the_same_noise",
        "float threshold truncated to int": "test_keys.py test_no_float_threshold_is_truncated_to_an_integer",
        "a filter that matches nobody": "test_keys.py test_a_filter_that_matches_nobody_returns_its_row",
        "category codes in order of appearance": (
            "test_keys.py test_category_codes_in_order_of_appearance_change_nothing; "
            "audit/test_own.py test_two_thousand_pairs_of_neighbours_show_no_more_than_was_priced"
        ),
    },
    "SQL": {
        "LIMIT in a subquery": "test_sql.py test_limit_in_a_subquery_is_refused",
        "a table missing from the unit treated as public": "test_sql.py test_a_table_missing_from_the_catalog_is_not_public",
        "SUM(x) OVER () across people": "test_sql.py test_windows_across_people_are_refused",
        "DISTINCT ignored": "test_sql.py test_distinct_is_not_ignored",
        "variance as E[x^2] - E[x]": "test_sql.py test_variance_is_the_mean_of_squares_less_the_square_of_the_mean",
        "noise from the database's RANDOM()": "test_sql.py test_no_noise_comes_from_the_database",
        "functions the analyser takes for the identity": (
            "test_sql.py test_what_the_analyser_says_of_a_function_holds_in_the_engine"
        ),
        "unknown clauses silently dropped": "test_sql.py test_unknown_clauses_are_not_silently_dropped",
        "literals or identifiers spliced into text": (
            "test_spelling.py test_literals_and_identifiers_are_not_spliced_into_text"
        ),
        "case, space and Unicode forms of keys": (
            "test_spelling.py test_case_trailing_space_and_unicode_forms_of_keys_mean_the_same_everywhere"
        ),
    },
    "Errors and channels": {
        "one row that makes an expression raise": "test_errors.py test_no_row_makes_an_expression_raise",
        "error text quoting a value": "test_errors.py test_no_error_text_quotes_a_value",
        "charge or refusal that depends on data": "test_errors.py test_charge_and_refusal_do_not_depend_on_data",
        "result size": "test_errors.py test_the_size_of_a_result_does_not_depend_on_data",
        "EXPLAIN row estimates": "test_errors.py test_a_quote_has_no_row_estimates",
        "run time that depends on |noise|": (
            "test_errors.py test_the_work_of_a_release_depends_neither_on_the_answer_nor_on_the_noise"
        ),
    },
    "Budget": {
        "check-then-spend races": (
            "test_budget.py test_checking_and_spending_is_one_step_for_racing_threads; "
            "ledger/test_race.py test_exactly_as_many_are_answered_as_the_budget_allows"
        ),
        "crash after release, before commit": (
            "test_paying.py test_a_crash_after_release_and_before_commit_gives_no_answer_and_stays_paid"
        ),
        "refund on failure": "test_paying.py test_there_is_no_refund_on_failure_and_no_second_run_for_one_charge",
        "answers re-run for one charge": "test_paying.py test_there_is_no_refund_on_failure_and_no_second_run_for_one_charge",
        "0.1 x 10 in floats": "test_budget.py test_ten_times_a_tenth_is_one_and_then_nothing_is_left",
        "a spend of 1e-17 that vanishes": "test_budget.py test_a_tiny_spend_does_not_vanish",
        "negative, NaN, infinite epsilon": "test_budget.py test_no_strange_epsilon_becomes_a_loss",
        "an option that skips the odometer": "test_paying.py test_no_option_skips_the_odometer",
        "a budget object that is copied": "test_budget.py test_a_budget_cannot_be_copied_into_a_second_one",
        "per-user budgets with no cap per dataset": (
            "test_paying.py test_budgets_per_user_do_not_go_beyond_that_of_the_dataset"
        ),
        "ledger restored from an old copy": "test_paying.py test_a_ledger_restored_from_an_old_copy_is_refused",
        "k-fold composition priced as one": "test_budget.py test_a_hundred_responses_are_not_priced_as_one",
    },
    "Seen in this project": {
        "brute force over small graphs that confirms a false bound": (
            "test_graph_neighbours.py test_a_bound_that_small_graphs_confirm_is_broken_by_a_larger_one; "
            "graphs/test_projection.py test_small_graphs_would_confirm_a_false_bound_for_triangles"
        ),
        "a stored timestamp that only a reader rejects": (
            "test_zoo.py test_neighbours_in_the_zoo_have_equal_status; "
            "test_zoo.py test_that_it_would_tell_if_columns_were_not_read_on_opening"
        ),
        "a failure after the charge that may be repeated": (
            "test_seen.py test_a_failure_after_the_charge_is_not_repeated; "
            "journey/test_fuse.py test_a_failure_closes_and_stored_answers_are_still_given"
        ),
        "outputs written over the ledger's log": "test_seen.py test_outputs_are_not_written_over_the_ledgers_log",
        "two names of one ledger file": "test_seen.py test_two_names_are_one_budget",
        "a capital letter that makes another table": "test_seen.py test_a_capital_letter_makes_no_other_table",
        "an interrupt between a lock and its try": (
            "test_seen.py test_an_interrupt_at_the_lock_leaves_it_free; "
            "faults/test_interrupts.py test_after_an_interrupt_anywhere_nothing_is_stuck_and_the_charge_is_true"
        ),
        "the same question at once, paid several times": (
            "test_seen.py test_the_same_question_at_once_is_paid_once; ledger/test_flight.py test_that_check_can_fail"
        ),
        "sums that a checker recomputes itself": "test_seen.py test_sums_made_again_by_the_checkers_own_code_are_found",
    },
    "Randomness": {
        "seeded or predictable generators": "test_randomness.py test_seeding_every_known_generator_changes_nothing",
        "the same stream in forked workers": (
            "test_randomness.py test_forked_children_draw_differently_from_each_other_and_from_the_parent"
        ),
        "noise keyed by query text and averaged out": (
            "test_paying.py test_noise_is_not_keyed_by_the_text_of_a_question_and_averages_out_at_full_price_only"
        ),
        "choices re-drawn when an engine retries": (
            "test_paying.py test_random_choices_are_not_drawn_again_when_an_engine_starts_over"
        ),
    },
    "Usability": {
        "budget spent by a question that crashes on its defaults": (
            "test_fuzz.py test_every_question_is_answered_or_refused_cleanly"
        ),
        "truncation that keeps k - 1 groups": "test_usability.py test_truncation_keeps_as_many_groups_as_it_charges_for",
        "counts clamped at zero": "test_usability.py test_counts_are_not_clamped_at_zero",
        "the count paid twice in a mean": "test_usability.py test_the_count_is_not_paid_twice_in_a_mean",
        "planning that takes seconds": "test_usability.py test_a_plain_count_is_planned_in_few_steps",
        "dependencies pinned too tightly": (
            "test_usability.py test_dependencies_are_not_pinned_so_tightly_that_the_library_stops_importing"
        ),
        "silent subsampling": "test_usability.py test_no_rows_are_silently_left_out",
        "errors that blame the wrong thing": (
            "test_usability.py test_an_error_names_what_is_wrong_where_it_stands; "
            "sql/test_golden.py test_every_question_gives_what_the_file_says"
        ),
    },
}
LINES = [(section, words) for section, lines in PITFALLS.items() for words in lines]


@cache
def functions(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def missing(told: str) -> list[str]:
    """Returns the named tests that do not exist."""
    found = []
    for place, one in enumerate(told.split("; ")):
        file, function = one.split(" ")
        path = HERE / file if "/" not in file else TESTS / file
        if (place == 0 and path.parent != HERE) or not path.exists() or function not in functions(path):
            found.append(one)
    return found


@pytest.mark.parametrize(("section", "words"), LINES)
def test_every_pitfall_has_a_test(section: str, words: str) -> None:
    assert missing(PITFALLS[section][words]) == []


def test_that_a_missing_test_would_be_noticed() -> None:
    assert missing("test_sql.py test_that_is_not_there") != []
    assert missing("test_gone.py test_distinct_is_not_ignored") != []
    assert missing("ledger/test_race.py test_exactly_as_many_are_answered_as_the_budget_allows") != [], "none in this folder"


def test_all_sections_are_here() -> None:
    assert [len(lines) for lines in PITFALLS.values()] == [12, 10, 6, 10, 6, 12, 9, 4, 8]


def test_the_list_itself_has_no_other_sections() -> None:
    """Runs only where the list lies beside this folder."""
    listed = TESTS.parents[1] / "shared" / "PITFALLS.md"
    if not listed.exists():
        pytest.skip("the list of pitfalls is not here")
    sections = re.findall(r"^\*\*([^*]+)\.\*\*", listed.read_text(encoding="utf-8"), re.M)
    assert [section.split(" that ")[0] for section in sections] == list(PITFALLS)
