import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.iceberg.spark.SparkSchemaUtil;
import org.apache.iceberg.spark.functions.SparkFunctions;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Iceberg's tables in one directory, as a catalog that Spark 4.2 accepts.
 *
 * <p>Spark 4.2 refuses Iceberg 1.11's own catalogs: they have tables and views in the way of Spark 4.1. Only names are
 * looked up here; tables, scans, writes and the bucket function are Iceberg's.
 */
public final class IcebergTables implements TableCatalog, FunctionCatalog {
    private String name;
    private String root;
    private HadoopTables tables;

    @Override
    public void initialize(String name, CaseInsensitiveStringMap options) {
        this.name = name;
        this.root = options.get("warehouse");
        this.tables = new HadoopTables(SparkSession.active().sessionState().newHadoopConf());
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Identifier[] listTables(String[] namespace) {
        return new Identifier[0];
    }

    @Override
    public Table loadTable(Identifier identifier) throws org.apache.spark.sql.catalyst.analysis.NoSuchTableException {
        try {
            return new SparkTable(tables.load(location(identifier)));
        } catch (NoSuchTableException error) {
            throw new org.apache.spark.sql.catalyst.analysis.NoSuchTableException(identifier);
        }
    }

    @Override
    public Table createTable(
            Identifier identifier, StructType columns, Transform[] transforms, Map<String, String> properties) {
        Schema schema = SparkSchemaUtil.convert(columns);
        PartitionSpec spec = Spark3Util.toPartitionSpec(schema, transforms);
        Map<String, String> own = new HashMap<>(properties);
        own.keySet().removeAll(List.of("provider", "owner", "location"));
        return new SparkTable(tables.create(schema, spec, own, location(identifier)));
    }

    @Override
    public Table alterTable(Identifier identifier, TableChange... changes) {
        throw new UnsupportedOperationException("alter");
    }

    @Override
    public boolean dropTable(Identifier identifier) {
        return tables.dropTable(location(identifier));
    }

    @Override
    public void renameTable(Identifier from, Identifier to) {
        throw new UnsupportedOperationException("rename");
    }

    @Override
    public Identifier[] listFunctions(String[] namespace) {
        return new Identifier[0];
    }

    @Override
    public UnboundFunction loadFunction(Identifier identifier)
            throws org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException {
        UnboundFunction function = SparkFunctions.load(identifier.name());
        if (function == null) {
            throw new org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException(identifier);
        }
        return function;
    }

    private String location(Identifier identifier) {
        return root + "/" + identifier.name();
    }
}
