"""Four made-up data sets, and the questions that an analyst would write down before seeing them."""
