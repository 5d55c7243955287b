import java.sql.*;
import java.util.*;

/** What DBeaver, Metabase and Tableau do over JDBC. Arguments: address, name, token. Prints one line for each step. */
public class Tools {
    interface Step {
        Object run() throws Exception;
    }

    static void step(String name, Step step) {
        try {
            System.out.println("ok " + name + ": " + step.run());
        } catch (Exception error) {
            System.out.println("FAILED " + name + ": " + error.getMessage().replace("\n", " / "));
        }
    }

    static List<String> values(ResultSet rows, String column) throws SQLException {
        List<String> found = new ArrayList<>();
        while (rows.next()) {
            found.add(rows.getString(column));
        }
        return found;
    }

    public static void main(String[] given) throws Exception {
        try (Connection link = DriverManager.getConnection(given[0], given[1], given[2])) {
            DatabaseMetaData about = link.getMetaData();
            step("product", () -> about.getDatabaseProductName());
            step("schemas", () -> values(about.getSchemas(), "TABLE_SCHEM"));
            step("tables", () -> values(about.getTables(null, "public", "%", new String[] {"TABLE"}), "TABLE_NAME"));
            step("columns", () -> values(about.getColumns(null, "public", "people", "%"), "COLUMN_NAME"));
            step("remarks", () -> values(about.getColumns(null, "public", "people", "age"), "REMARKS"));
            step("keys", () -> values(about.getPrimaryKeys(null, "public", "people"), "COLUMN_NAME"));
            step("types", () -> values(about.getTypeInfo(), "TYPE_NAME").contains("int8"));
            String quoted = "SELECT \"public\".\"people\".\"ward\" AS \"ward\", COUNT(*) AS \"n\" FROM \"public\".\"people\" "
                    + "GROUP BY \"public\".\"people\".\"ward\" ORDER BY \"public\".\"people\".\"ward\" ASC";
            step("question", () -> values(link.createStatement().executeQuery(quoted), "ward"));
            step("warning", () -> {
                Statement asked = link.createStatement();
                asked.executeQuery(quoted);
                return asked.getWarnings().getMessage();
            });
            step("prepared", () -> {
                PreparedStatement asked = link.prepareStatement("SELECT COUNT(*) AS n FROM people WHERE ward = ? AND age > ?");
                Set<Long> found = new HashSet<>();
                for (int i = 0; i < 7; i++) { // binary after five
                    asked.setString(1, "north");
                    asked.setInt(2, 30);
                    ResultSet rows = asked.executeQuery();
                    rows.next();
                    found.add(rows.getLong(1));
                }
                return found.size();
            });
            step("described", () -> {
                PreparedStatement asked = link.prepareStatement("SELECT AVG(age) AS a FROM people WHERE ward = ?");
                return asked.getMetaData().getColumnTypeName(1) + " " + asked.getParameterMetaData().getParameterTypeName(1);
            });
            step("fetched", () -> {
                link.setAutoCommit(false);
                Statement asked = link.createStatement();
                asked.setFetchSize(1);
                List<String> found = values(asked.executeQuery(quoted), "ward");
                link.commit();
                link.setAutoCommit(true);
                return found;
            });
            step("refused", () -> {
                try {
                    link.createStatement().executeQuery("SELECT SUM(income) FROM people");
                    return "answered";
                } catch (SQLException error) {
                    return error.getSQLState() + " " + error.getMessage().contains("Position: 12");
                }
            });
            step("valid", () -> {
                link.setReadOnly(true);
                return link.isValid(5) + " " + link.getSchema();
            });
        }
    }
}
