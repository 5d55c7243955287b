# What R users do. Arguments: port, name, token. Prints one line for each step.
given <- commandArgs(TRUE)
suppressMessages({library(DBI); library(RPostgreSQL); library(dplyr); library(dbplyr)})
step <- function(name, run) {
  found <- tryCatch(
    paste0("ok ", name, ": ", paste(utils::capture.output(run()), collapse = " / ")),
    error = function(e) paste0("FAILED ", name, ": ", gsub("\n", " / ", conditionMessage(e)))
  )
  cat(found, "\n")
}
con <- dbConnect(
  PostgreSQL(), host = "127.0.0.1", port = as.integer(given[1]), user = given[2], password = given[3],
  dbname = "survey", options = "-c dither.epsilon=0.1"
)
step("tables", function() dbListTables(con))
step("question", function() dbGetQuery(con, "SELECT ward, COUNT(*) AS n FROM people GROUP BY ward")$ward)
people <- tbl(con, "people")
step("count", function() sort((people %>% count(ward) %>% collect())$ward))
step("summarise", function() {
  found <- people %>% filter(age > 30) %>% group_by(ward) %>% summarise(a = mean(age, na.rm = TRUE), n = n()) %>% collect()
  dim(found)
})
step("after", function() dim(people %>% count(ward) %>% arrange(desc(n)) %>% head(1) %>% collect()))
step("rows", function() tryCatch({people %>% head(3) %>% collect(); "shown"}, error = function(e) "refused"))
