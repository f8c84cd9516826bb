package penstock;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;

import org.apache.hive.service.cli.CLIService;
import org.apache.hive.service.cli.HiveSQLException;
import org.apache.hive.service.cli.OperationState;
import org.apache.hive.service.cli.RowSet;
import org.apache.hive.service.cli.operation.GetColumnsOperation;
import org.apache.hive.service.cli.operation.GetSchemasOperation;
import org.apache.hive.service.cli.operation.GetTablesOperation;
import org.apache.hive.service.cli.operation.MetadataOperation;
import org.apache.hive.service.cli.operation.OperationManager;
import org.apache.hive.service.cli.session.HiveSession;
import org.apache.hive.service.cli.session.SessionManager;
import org.apache.hive.service.server.HiveServer2;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.util.StringUtils;
import org.apache.spark.sql.hive.thriftserver.SparkGetColumnsOperation;
import org.apache.spark.sql.hive.thriftserver.SparkSQLSessionManager;
import org.apache.spark.sql.hive.thriftserver.server.SparkSQLOperationManager;
import org.apache.spark.sql.types.StructType;

/**
 * What the Thrift server says to the metadata calls of JDBC and ODBC: Spark asks its own catalog only, whatever the
 * current one is. Here the current catalog answers, or the one that the call names. Spark's own is still asked by
 * Spark.
 */
public class ServerMetadata extends SparkSQLOperationManager {
    private static final String SPARK_CATALOG = "spark_catalog";

    /** Answer the calls of sessions that are opened from now on. */
    public void serve(HiveServer2 server) throws Exception {
        // Spark's class looks for the field in the parent of its object's class, which is another one here.
        field(SparkSQLOperationManager.class, "handleToOperation")
            .set(this, field(OperationManager.class, "handleToOperation").get(this));
        Iterator services = server.getServices().iterator();
        while (services.hasNext()) {
            Object service = services.next();
            if (service instanceof CLIService) {
                SessionManager sessions = ((CLIService) service).getSessionManager();
                field(SparkSQLSessionManager.class, "sparkSqlOperationManager").set(sessions, this);
                field(SessionManager.class, "operationManager").set(sessions, this);
            }
        }
    }

    public GetSchemasOperation newGetSchemasOperation(HiveSession parent, String catalog, String schema) {
        String name = catalogFor(parent, catalog);
        if (name.equals(SPARK_CATALOG)) {
            return super.newGetSchemasOperation(parent, catalog, schema);
        }
        GetSchemasOperation made = new Schemas(this, parent, name, schema);
        handleToOperation().put(made.getHandle(), made);
        return made;
    }

    public MetadataOperation newGetTablesOperation(
        HiveSession parent, String catalog, String schema, String table, List types
    ) {
        String name = catalogFor(parent, catalog);
        if (name.equals(SPARK_CATALOG)) {
            return super.newGetTablesOperation(parent, catalog, schema, table, types);
        }
        MetadataOperation made = new Tables(this, parent, name, schema, table, types);
        handleToOperation().put(made.getHandle(), made);
        return made;
    }

    public GetColumnsOperation newGetColumnsOperation(
        HiveSession parent, String catalog, String schema, String table, String column
    ) {
        String name = catalogFor(parent, catalog);
        if (name.equals(SPARK_CATALOG)) {
            return super.newGetColumnsOperation(parent, catalog, schema, table, column);
        }
        GetColumnsOperation made = new Columns(this, parent, name, schema, table, column);
        handleToOperation().put(made.getHandle(), made);
        return made;
    }

    private String catalogFor(HiveSession parent, String named) {
        boolean isNamed = named != null && !named.isEmpty();
        return isNamed ? named : ((Row) rows(parent, "SELECT current_catalog()").get(0)).getString(0);
    }

    /** Until Spark 4.0 a session of a client has an SQLContext, which has the session. */
    private SparkSession session(HiveSession parent) {
        Object context = sessionToContexts().get(parent.getSessionHandle());
        return context instanceof SparkSession ? (SparkSession) context : ((SQLContext) context).sparkSession();
    }

    private List rows(HiveSession parent, String statement) {
        return session(parent).sql(statement).collectAsList();
    }

    /** The names in a column of a statement's rows that a pattern of JDBC matches. */
    private Set names(HiveSession parent, String statement, int column, String pattern) {
        Pattern wanted = like(pattern);
        Set found = new TreeSet();
        Iterator rows = rows(parent, statement).iterator();
        while (rows.hasNext()) {
            String name = ((Row) rows.next()).getString(column);
            if (wanted.matcher(name).matches()) {
                found.add(name);
            }
        }
        return found;
    }

    private Set schemas(HiveSession parent, String catalog, String pattern) {
        return names(parent, "SHOW NAMESPACES IN " + quoted(catalog), 0, pattern);
    }

    private Set tables(HiveSession parent, String catalog, String schema, String pattern) {
        return names(parent, "SHOW TABLES IN " + quoted(catalog) + "." + quoted(schema), 1, pattern);
    }

    private Set views(HiveSession parent, String catalog, String schema, String pattern) throws Exception {
        try {
            return names(parent, "SHOW VIEWS IN " + quoted(catalog) + "." + quoted(schema), 1, pattern);
        } catch (Exception error) {
            if (error instanceof AnalysisException) { // a catalog, or a version of Spark, without views
                return new TreeSet();
            }
            throw error;
        }
    }

    private static Pattern like(String pattern) {
        boolean isOpen = pattern == null || pattern.isEmpty();
        return Pattern.compile(StringUtils.escapeLikeRegex(isOpen ? "%" : pattern, '\\'));
    }

    private static String quoted(String name) {
        return "`" + name.replace("`", "``") + "`";
    }

    private static Field field(Class type, String name) throws Exception {
        Field found = type.getDeclaredField(name);
        found.setAccessible(true);
        return found;
    }

    private static HiveSQLException failure(Throwable error) {
        return error instanceof HiveSQLException
            ? (HiveSQLException) error
            : new HiveSQLException(String.valueOf(error.getMessage()), error);
    }

    private static class Schemas extends GetSchemasOperation {
        private final ServerMetadata server;
        private final String catalog;
        private final String schema;

        Schemas(ServerMetadata server, HiveSession parent, String catalog, String schema) {
            super(parent, catalog, schema);
            this.server = server;
            this.catalog = catalog;
            this.schema = schema;
        }

        public void runInternal() throws HiveSQLException {
            setState(OperationState.RUNNING);
            try {
                Iterator names = server.schemas(getParentSession(), catalog, schema).iterator();
                while (names.hasNext()) {
                    rowSet.addRow(new Object[] {names.next(), catalog});
                }
                setState(OperationState.FINISHED);
            } catch (Throwable error) {
                setState(OperationState.ERROR);
                throw failure(error);
            }
        }
    }

    private static class Tables extends GetTablesOperation {
        private final ServerMetadata server;
        private final String catalog;
        private final String schema;
        private final String table;
        private final List types;

        Tables(ServerMetadata server, HiveSession parent, String catalog, String schema, String table, List types) {
            super(parent, catalog, schema, table, types);
            this.server = server;
            this.catalog = catalog;
            this.schema = schema;
            this.table = table;
            this.types = types;
        }

        public void runInternal() throws HiveSQLException {
            setState(OperationState.RUNNING);
            try {
                Iterator names = server.schemas(getParentSession(), catalog, schema).iterator();
                while (names.hasNext()) {
                    String name = (String) names.next();
                    Set views = server.views(getParentSession(), catalog, name, table);
                    Set tables = server.tables(getParentSession(), catalog, name, table);
                    tables.removeAll(views);
                    add(name, tables, "TABLE");
                    add(name, views, "VIEW");
                }
                setState(OperationState.FINISHED);
            } catch (Throwable error) {
                setState(OperationState.ERROR);
                throw failure(error);
            }
        }

        private void add(String schema, Set names, String type) {
            Iterator each = names.iterator();
            while (each.hasNext() && (types == null || types.isEmpty() || types.contains(type))) {
                rowSet.addRow(new Object[] {catalog, schema, each.next(), type, "", null, null, null, null, null});
            }
        }
    }

    private static class Columns extends GetColumnsOperation {
        private final ServerMetadata server;
        private final String catalog;
        private final String schema;
        private final String table;
        private final String column;

        Columns(ServerMetadata server, HiveSession parent, String catalog, String schema, String table, String column) {
            super(parent, catalog, schema, table, column);
            this.server = server;
            this.catalog = catalog;
            this.schema = schema;
            this.table = table;
            this.column = column;
        }

        public void runInternal() throws HiveSQLException {
            setState(OperationState.RUNNING);
            try {
                Iterator names = server.schemas(getParentSession(), catalog, schema).iterator();
                while (names.hasNext()) {
                    String name = (String) names.next();
                    Set tables = server.tables(getParentSession(), catalog, name, table);
                    tables.addAll(server.views(getParentSession(), catalog, name, table));
                    Iterator each = tables.iterator();
                    while (each.hasNext()) {
                        add(name, (String) each.next());
                    }
                }
                setState(OperationState.FINISHED);
            } catch (Throwable error) {
                setState(OperationState.ERROR);
                throw failure(error instanceof InvocationTargetException ? error.getCause() : error);
            }
        }

        /** Spark's own operation, which is not run, knows how types are described. */
        private void add(String schema, String table) throws Exception {
            SparkSession session = server.session(getParentSession());
            StructType type = session.table(quoted(catalog) + "." + quoted(schema) + "." + quoted(table)).schema();
            Constructor spark = SparkGetColumnsOperation.class.getConstructors()[0];
            Object context = server.sessionToContexts().get(getParentSession().getSessionHandle());
            Object described = spark.newInstance(
                new Object[] {context, getParentSession(), catalog, schema, table, column}
            );
            Method describe = SparkGetColumnsOperation.class.getDeclaredMethod(
                "addToRowSet", new Class[] {Pattern.class, String.class, String.class, StructType.class}
            );
            describe.setAccessible(true);
            describe.invoke(described, new Object[] {like(column), schema, table, type});
            Iterator rows = ((RowSet) field(GetColumnsOperation.class, "rowSet").get(described)).iterator();
            while (rows.hasNext()) {
                Object[] row = (Object[]) rows.next();
                row[0] = catalog;
                rowSet.addRow(row);
            }
        }
    }
}
