import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.paimon.AppendOnlyFileStore;
import org.apache.paimon.append.AppendCompactTask;
import org.apache.paimon.append.cluster.IncrementalClusterManager;
import org.apache.paimon.append.cluster.Sorter;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.compact.CompactUnit;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.deletionvectors.Bitmap64DeletionVector;
import org.apache.paimon.deletionvectors.BitmapDeletionVector;
import org.apache.paimon.deletionvectors.DeletionVector;
import org.apache.paimon.deletionvectors.append.BaseAppendDeleteFileMaintainer;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.fs.Path;
import org.apache.paimon.index.IndexFileMeta;
import org.apache.paimon.io.CompactIncrement;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.io.DataIncrement;
import org.apache.paimon.manifest.FileKind;
import org.apache.paimon.manifest.IndexManifestEntry;
import org.apache.paimon.manifest.ManifestCommittable;
import org.apache.paimon.operation.BaseAppendFileStoreWrite;
import org.apache.paimon.options.ExpireConfig;
import org.apache.paimon.options.Options;
import org.apache.paimon.partition.PartitionPredicate;
import org.apache.paimon.partition.actions.SuccessFileMarkDoneAction;
import org.apache.paimon.partition.file.SuccessFile;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.reader.RecordReaderIterator;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.schema.SchemaChange;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.core.type.TypeReference;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.SpecialFields;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.CommitMessageImpl;
import org.apache.paimon.table.sink.StreamTableWrite;
import org.apache.paimon.table.sink.TableCommitImpl;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.EndOfScanException;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.table.source.StreamTableScan;
import org.apache.paimon.table.source.TableRead;
import org.apache.paimon.tag.TagBatchCreation;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypeJsonParser;
import org.apache.paimon.types.DataTypes;
import org.apache.paimon.types.RowType;
import org.apache.paimon.utils.MutableObjectIterator;
import org.apache.paimon.utils.Pair;
import org.apache.paimon.view.ViewImpl;

/**
 * The Java reference as a server: one JSON request a line on standard input, one JSON answer a line on standard output.
 *
 * <p>A request names its operation in {@code op}, and {@code warehouse} and {@code table} ("db.name") where it has
 * them; the methods say what else. The answer is {@code {"ok": ...}} or {@code {"error": "...", "trace": "..."}}. Rows
 * are canonical JSON in no promised order.
 */
public final class Engine {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private final Map<String, Catalog> catalogs = new HashMap<>();
    private final Map<String, StreamTableWrite> writers = new HashMap<>();
    private final Map<String, StreamTableScan> followers = new HashMap<>();
    private final IOManager spill = IOManager.create(System.getProperty("java.io.tmpdir"));

    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err); // what a library prints must not get among the answers
        Engine engine = new Engine();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = requests.readLine()) != null; ) {
            answers.println(engine.answer(line));
            answers.flush();
        }
        System.exit(0); // threads of the libraries would keep the process alive
    }

    private String answer(String line) {
        ObjectNode answer = MAPPER.createObjectNode();
        try {
            answer.set("ok", serve(MAPPER.readTree(line)));
        } catch (Throwable error) {
            Throwable root = error;
            while (root.getCause() != null) root = root.getCause();
            answer.put("error", root.getClass().getSimpleName() + ": " + root.getMessage());
            answer.put("trace", error + " at " + Arrays.toString(Arrays.copyOf(root.getStackTrace(), 8)));
        }
        return answer.toString();
    }

    private JsonNode serve(JsonNode request) throws Exception {
        if (request.get("op").asText().equals("rest_server")) return RestServer.start(request);
        Catalog catalog = catalog(request.get("warehouse").asText(), request);
        Identifier name = Identifier.fromString(request.get("table").asText());
        switch (request.get("op").asText()) {
            case "create":
                create(catalog, name, request);
                return null;
            case "drop":
                catalog.dropTable(name, true);
                return null;
            case "alter":
                List<SchemaChange> changes = new ArrayList<>();
                for (JsonNode change : request.get("changes")) changes.add(change(change));
                catalog.alterTable(name, changes, false);
                return null;
            case "names": // of the tables of a database
                return MAPPER.valueToTree(catalog.listTables(name.getDatabaseName()));
            case "views": // of a database, with the text for Spark of each
                Map<String, String> views = new HashMap<>();
                for (String view : catalog.listViews(name.getDatabaseName())) {
                    Identifier found = Identifier.create(name.getDatabaseName(), view);
                    views.put(view, catalog.getView(found).query("spark"));
                }
                return MAPPER.valueToTree(views);
            case "create_view": // without a text for Spark
                List<DataField> columns = new ArrayList<>();
                for (JsonNode column : request.get("columns")) {
                    columns.add(new DataField(columns.size(), column.asText(), DataTypes.BIGINT()));
                }
                String query = request.get("query").asText();
                Map<String, String> none = new HashMap<>();
                catalog.createView(name, new ViewImpl(name, columns, query, none, "of Java", none), false);
                return null;
            default:
                Table table = catalog.getTable(name);
                if (request.has("options")) table = table.copy(strings(request.get("options")));
                return serve(table, name, request);
        }
    }

    private JsonNode serve(Table any, Identifier name, JsonNode request) throws Exception {
        String op = request.get("op").asText();
        if (op.equals("read")) return read(any, request);
        FileStoreTable table = (FileStoreTable) any;
        String user = request.has("user") ? request.get("user").asText() : "java-reference";
        switch (op) {
            case "schema":
                return schema(table);
            case "follow":
                return follow(table, followers.computeIfAbsent(
                        table.location() + "/" + user, key -> table.newReadBuilder().newStreamScan()));
            case "buckets":
                return buckets(table);
            case "write":
                return write(table, request);
            case "stream":
                return stream(table, name + "/" + user, user, request);
            case "close":
                StreamTableWrite writer = writers.remove(name + "/" + user);
                if (writer != null) writer.close();
                return null;
            case "compact":
                compact(table, user, !request.has("full") || request.get("full").asBoolean());
                return null;
            case "cluster":
                return cluster(table, user, request);
            case "tag":
                if (request.has("snapshot")) table.createTag(request.get("name").asText(), request.get("snapshot").asLong());
                else table.createTag(request.get("name").asText());
                return null;
            case "tags": // by name, the id of the snapshot of each
                ObjectNode tags = MAPPER.createObjectNode();
                table.tagManager().tags().forEach(
                        (snapshot, names) -> names.forEach(each -> tags.put(each, snapshot.id())));
                return tags;
            case "auto_tags": // what a commit does after the snapshots that are there
                table.newTagAutoManager().run();
                return null;
            case "batch_tag": // what a batch job of Flink does at its end
                new TagBatchCreation(table).createTag();
                return null;
            case "until": // the id of the snapshot that a rollback to a watermark goes back to
                return MAPPER.valueToTree(
                        table.snapshotManager().earlierOrEqualWatermark(request.get("watermark").asLong()).id());
            case "since": // the ids of the first snapshots since a time and a watermark
                return MAPPER.createArrayNode()
                        .add(table.snapshotManager().laterOrEqualTimeMills(request.get("time").asLong()).id())
                        .add(table.snapshotManager().laterOrEqualWatermark(request.get("watermark").asLong()).id());
            case "at": // the id of the newest snapshot until a time
                return MAPPER.valueToTree(
                        table.snapshotManager().earlierOrEqualTimeMills(request.get("time").asLong()).id());
            case "replace_tag":
                table.replaceTag(request.get("name").asText(), request.get("snapshot").asLong(), null);
                return null;
            case "rename_tag":
                table.renameTag(request.get("name").asText(), request.get("to").asText());
                return null;
            case "compact_manifests":
                try (BatchTableCommit commit = table.newBatchWriteBuilder().newCommit()) {
                    commit.compactManifests();
                }
                return null;
            case "delete_positions":
                deletePositions(table, request.get("rows"));
                return null;
            case "deletion_vectors":
                return deletionVectors(request.get("positions"));
            case "mark_done":
                new SuccessFileMarkDoneAction(table.fileIO(), table.location())
                        .markDone(request.get("partition").asText());
                return null;
            case "success": // the times of a partition's success file
                SuccessFile done = SuccessFile.fromPath(
                        table.fileIO(), new Path(table.location(), request.get("partition").asText() + "/_SUCCESS"));
                return MAPPER.createArrayNode().add(done.creationTime()).add(done.modificationTime());
            case "rollback":
                table.rollbackTo(request.get("snapshot").asLong());
                return null;
            case "truncate":
                try (BatchTableCommit commit = table.newBatchWriteBuilder().newCommit()) {
                    commit.truncateTable();
                }
                return null;
            case "drop_partitions": // each a column to the text of its value
                try (BatchTableCommit commit = table.newBatchWriteBuilder().newCommit()) {
                    List<Map<String, String>> specs = new ArrayList<>();
                    for (JsonNode each : request.get("partitions")) {
                        specs.add(MAPPER.convertValue(each, new TypeReference<Map<String, String>>() {}));
                    }
                    commit.truncatePartitions(specs);
                }
                return null;
            case "expire":
                ExpireConfig config = ExpireConfig.builder()
                        .snapshotRetainMax(request.get("retain").asInt())
                        .snapshotRetainMin(request.get("retain").asInt())
                        .snapshotTimeRetain(Duration.ZERO)
                        .snapshotMaxDeletes(Integer.MAX_VALUE)
                        .build();
                return MAPPER.valueToTree(table.newExpireSnapshots().config(config).expire());
            default:
                throw new IllegalArgumentException("unknown op " + op);
        }
    }

    /** Without a cache: other engines change the tables between two requests. */
    private Catalog catalog(String warehouse, JsonNode request) {
        Map<String, String> more = request.has("catalog") ? strings(request.get("catalog")) : Map.of();
        return catalogs.computeIfAbsent(warehouse + more, key -> {
            Options options = new Options();
            options.set("warehouse", warehouse);
            more.forEach(options::set);
            options.set("cache-enabled", "false");
            return CatalogFactory.createCatalog(CatalogContext.create(options));
        });
    }

    // ------------------------------------------------------------------ reads

    /**
     * {@code columns}: names to project. {@code filter}: conditions {@code [column, operator, value, ...]}, all of which
     * hold, pushed down as a query would. {@code meta}: add _bucket and _partition to each row.
     * Answer: {@code {"rows": [...], "files": n}}, files being what the plan left after pruning.
     */
    private static JsonNode read(Table table, JsonNode request) throws Exception {
        ReadBuilder builder = table.newReadBuilder();
        RowType fullType = table.rowType();
        if (request.has("columns")) builder.withProjection(
                texts(request.get("columns")).stream().mapToInt(fullType::getFieldIndex).toArray());
        if (request.has("filter")) builder.withFilter(filter(fullType, request.get("filter")));
        RowType type = builder.readType();
        TableRead read = builder.newRead();
        if (request.has("filter")) read = read.executeFilter();

        ObjectNode result = MAPPER.createObjectNode();
        ArrayNode rows = result.putArray("rows");
        int files = 0;
        for (Split split : builder.newScan().plan().splits()) {
            ObjectNode meta = MAPPER.createObjectNode();
            if (split instanceof DataSplit) {
                files += ((DataSplit) split).dataFiles().size();
                if (request.has("meta")) meta = meta((DataSplit) split, (FileStoreTable) table);
            }
            ObjectNode extra = meta;
            try (RecordReader<InternalRow> reader = read.createReader(split)) {
                reader.forEachRemaining(row -> rows.add(Values.toJson(row, type).setAll(extra)));
            }
        }
        return result.put("files", files);
    }

    /**
     * A stream read that goes on over requests, until there is nothing more for now.
     *
     * <p>Answer: {@code {"plans": [...], "next": id, "ended": bool}}, a plan being {@code {"watermark": ms, "splits":
     * [...]}} and a split {@code {"snapshot", "partition", "bucket", "rows"}}, all in the order in which they come.
     */
    private static JsonNode follow(FileStoreTable table, StreamTableScan scan) throws Exception {
        ObjectNode result = MAPPER.createObjectNode();
        ArrayNode plans = result.putArray("plans");
        result.put("ended", false);
        try {
            Long before;
            do {
                before = scan.checkpoint();
                List<Split> splits = scan.plan().splits();
                if (splits.isEmpty()) continue;
                ObjectNode plan = plans.addObject();
                plan.put("watermark", scan.watermark());
                ArrayNode planned = plan.putArray("splits");
                for (Split split : splits) planned.add(split(table, (DataSplit) split));
            } while (!Objects.equals(before, scan.checkpoint()));
        } catch (EndOfScanException end) {
            result.put("ended", true);
        }
        return result.put("next", scan.checkpoint());
    }

    private static JsonNode split(FileStoreTable table, DataSplit split) throws Exception {
        ObjectNode result = MAPPER.createObjectNode();
        result.put("snapshot", split.snapshotId());
        result.set("partition", Values.toJson(split.partition(), table.schema().logicalPartitionType()));
        result.put("bucket", split.bucket());
        ArrayNode rows = result.putArray("rows");
        try (RecordReader<InternalRow> reader = table.newReadBuilder().newRead().createReader(split)) {
            reader.forEachRemaining(row -> rows.add(Values.toJson(row, table.rowType())));
        }
        return result;
    }

    private static ObjectNode meta(DataSplit split, FileStoreTable table) {
        ObjectNode meta = MAPPER.createObjectNode();
        meta.put("_bucket", split.bucket());
        meta.set("_partition", Values.toJson(split.partition(), table.schema().logicalPartitionType()));
        return meta;
    }

    private static Predicate filter(RowType type, JsonNode conditions) {
        PredicateBuilder builder = new PredicateBuilder(type);
        List<Predicate> predicates = new ArrayList<>();
        for (JsonNode condition : conditions) {
            int index = type.getFieldIndex(condition.get(0).asText());
            List<Object> values = new ArrayList<>();
            for (int i = 2; i < condition.size(); i++) values.add(Values.value(condition.get(i), type.getTypeAt(index)));
            Object value = values.isEmpty() ? null : values.get(0);
            switch (condition.get(1).asText()) {
                case "=":
                    predicates.add(builder.equal(index, value));
                    break;
                case "<>":
                    predicates.add(builder.notEqual(index, value));
                    break;
                case "<":
                    predicates.add(builder.lessThan(index, value));
                    break;
                case "<=":
                    predicates.add(builder.lessOrEqual(index, value));
                    break;
                case ">=":
                    predicates.add(builder.greaterOrEqual(index, value));
                    break;
                case ">":
                    predicates.add(builder.greaterThan(index, value));
                    break;
                case "in":
                    predicates.add(builder.in(index, values));
                    break;
                case "not in":
                    predicates.add(builder.notIn(index, values));
                    break;
                case "starts with":
                    predicates.add(builder.startsWith(index, value));
                    break;
                case "is null":
                    predicates.add(builder.isNull(index));
                    break;
                case "is not null":
                    predicates.add(builder.isNotNull(index));
                    break;
                default:
                    throw new IllegalArgumentException("unknown operator in " + condition);
            }
        }
        return PredicateBuilder.and(predicates);
    }

    /** Answer: a deletion vector of these positions in an index file, with 32 and with 64 bits. */
    private static JsonNode deletionVectors(JsonNode positions) throws Exception {
        ArrayNode answer = MAPPER.createArrayNode();
        for (DeletionVector vector : List.of(new BitmapDeletionVector(), new Bitmap64DeletionVector())) {
            for (JsonNode position : positions) vector.delete(position.asLong());
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            vector.serializeTo(new DataOutputStream(bytes));
            answer.add(HexFormat.of().formatHex(bytes.toByteArray()));
        }
        return answer;
    }

    /** Deletes rows of an append table without partitions by deletion vectors: data file to positions. */
    private static void deletePositions(FileStoreTable table, JsonNode rows) throws Exception {
        boolean isBucketed = table.bucketMode() == BucketMode.HASH_FIXED;
        BaseAppendDeleteFileMaintainer maintainer = isBucketed
                ? BaseAppendDeleteFileMaintainer.forBucketedAppend(
                        table.store().newIndexFileHandler(),
                        table.snapshotManager().latestSnapshot(),
                        BinaryRow.EMPTY_ROW,
                        0)
                : BaseAppendDeleteFileMaintainer.forUnawareAppend(
                        table.store().newIndexFileHandler(),
                        table.snapshotManager().latestSnapshot(),
                        BinaryRow.EMPTY_ROW);
        for (Iterator<String> names = rows.fieldNames(); names.hasNext(); ) {
            String name = names.next();
            DeletionVector vector = table.coreOptions().deletionVectorBitmap64()
                    ? new Bitmap64DeletionVector() : new BitmapDeletionVector();
            for (JsonNode position : rows.get(name)) vector.delete(position.asLong());
            maintainer.notifyNewDeletionVector(name, vector);
        }
        List<IndexFileMeta> added = new ArrayList<>();
        List<IndexFileMeta> deleted = new ArrayList<>();
        for (IndexManifestEntry entry : maintainer.persist()) {
            (entry.kind() == FileKind.ADD ? added : deleted).add(entry.indexFile());
        }
        CommitMessage message = new CommitMessageImpl(
                BinaryRow.EMPTY_ROW,
                0,
                table.coreOptions().bucket(),
                new DataIncrement(List.of(), List.of(), List.of(), added, deleted),
                CompactIncrement.emptyIncrement());
        try (BatchTableCommit commit = table.newBatchWriteBuilder().newCommit()) {
            commit.commit(List.of(message));
        }
    }

    /** Answer: what Java takes the latest schema to be. */
    private static JsonNode schema(FileStoreTable table) {
        ObjectNode result = MAPPER.createObjectNode();
        result.put("id", table.schema().id());
        ArrayNode fields = result.putArray("fields");
        for (DataField field : table.schema().fields())
            fields.addArray().add(field.id()).add(field.name()).add(field.type().asSQLString());
        result.set("partition_keys", MAPPER.valueToTree(table.schema().partitionKeys()));
        result.set("bucket_keys", MAPPER.valueToTree(table.schema().bucketKeys()));
        result.set("options", MAPPER.valueToTree(table.schema().options()));
        return result;
    }

    /** Answer: how many rows there are, and how many lie in another bucket than Java would put them into. */
    private static JsonNode buckets(FileStoreTable table) throws Exception {
        int[] counts = new int[2];
        TableRead read = table.newReadBuilder().newRead();
        try (StreamTableWrite write = table.newStreamWriteBuilder().newWrite()) {
            for (Split split : table.newReadBuilder().newScan().plan().splits()) {
                int bucket = ((DataSplit) split).bucket();
                try (RecordReader<InternalRow> reader = read.createReader(split)) {
                    reader.forEachRemaining(row -> {
                        counts[0]++;
                        if (write.getBucket(row) != bucket) counts[1]++;
                    });
                }
            }
        }
        return MAPPER.createObjectNode().put("rows", counts[0]).put("elsewhere", counts[1]);
    }

    // ----------------------------------------------------------------- writes

    /** {@code rows}; {@code overwrite}: a partition as an object, {} for all; absent to append. One batch commit. */
    private JsonNode write(FileStoreTable table, JsonNode request) throws Exception {
        BatchWriteBuilder builder = table.newBatchWriteBuilder();
        if (request.has("overwrite")) builder.withOverwrite(strings(request.get("overwrite")));
        try (BatchTableWrite write = builder.newWrite();
                BatchTableCommit commit = builder.newCommit()) {
            write.withIOManager(spill);
            for (JsonNode row : request.get("rows")) write.write(Values.row(row, table.rowType()));
            commit.commit(write.prepareCommit());
        }
        return null;
    }

    /** One checkpoint {@code id} of a writer that stays open over requests; {@code watermark} in ms. */
    private JsonNode stream(FileStoreTable table, String key, String user, JsonNode request) throws Exception {
        StreamTableWrite write = writers.get(key);
        if (write == null) {
            write = table.newStreamWriteBuilder().withCommitUser(user).newWrite();
            write.withIOManager(spill);
            writers.put(key, write);
        }
        for (JsonNode row : request.get("rows")) write.write(Values.row(row, table.rowType()));
        long identifier = request.get("id").asLong();
        Long watermark = request.has("watermark") ? (Long) request.get("watermark").asLong() : null;
        ManifestCommittable committable = new ManifestCommittable(identifier, watermark);
        for (CommitMessage message : write.prepareCommit(true, identifier)) committable.addFileCommittable(message);
        try (TableCommitImpl commit = table.newCommit(user)) {
            commit.commit(committable);
        }
        return null;
    }

    private void compact(FileStoreTable table, String user, boolean full) throws Exception {
        List<Split> splits = table.newSnapshotReader().read().splits();
        if (table.bucketMode() == BucketMode.BUCKET_UNAWARE) compactFiles(table, user, splits);
        else compactBuckets(table.copy(Map.of("write-only", "false")), user, splits, full);
    }

    private static void compactFiles(FileStoreTable table, String user, List<Split> splits) throws Exception {
        Map<BinaryRow, List<DataFileMeta>> files = new LinkedHashMap<>();
        for (Split split : splits)
            files.computeIfAbsent(((DataSplit) split).partition(), key -> new ArrayList<>())
                    .addAll(((DataSplit) split).dataFiles());
        BaseAppendFileStoreWrite write = ((AppendOnlyFileStore) table.store()).newWrite(user);
        if (table.coreOptions().rowTrackingEnabled())
            write.withWriteType(SpecialFields.rowTypeWithRowTracking(table.rowType()));
        List<CommitMessage> messages = new ArrayList<>();
        for (Map.Entry<BinaryRow, List<DataFileMeta>> entry : files.entrySet())
            if (entry.getValue().size() > 1)
                messages.add(new AppendCompactTask(entry.getKey(), entry.getValue()).doCompact(table, write));
        try (TableCommitImpl commit = table.newCommit(user)) {
            commit.commit(Long.MAX_VALUE, messages);
        }
    }

    private void compactBuckets(FileStoreTable table, String user, List<Split> splits, boolean full) throws Exception {
        Set<List<Object>> buckets = new LinkedHashSet<>();
        for (Split split : splits) buckets.add(List.of(((DataSplit) split).partition(), ((DataSplit) split).bucket()));
        try (StreamTableWrite write = table.newStreamWriteBuilder().withCommitUser(user).newWrite();
                TableCommitImpl commit = table.newCommit(user)) {
            write.withIOManager(spill);
            for (List<Object> bucket : buckets) write.compact((BinaryRow) bucket.get(0), (Integer) bucket.get(1), full);
            commit.commit(Long.MAX_VALUE, write.prepareCommit(true, Long.MAX_VALUE));
        }
    }

    /**
     * Clusters a table as the procedure of Spark does, but for its shuffle. {@code full}; {@code partition}: only this
     * one, as an object; {@code dry}: only plan. Answer: for each partition its {@code level}, {@code files}.
     */
    private static JsonNode cluster(FileStoreTable table, String user, JsonNode request) throws Exception {
        PartitionPredicate only = null;
        if (request.has("partition")) {
            RowType type = table.schema().logicalPartitionType();
            only = PartitionPredicate.fromMultiple(
                    type,
                    PartitionPredicate.createBinaryPartitions(
                            List.of(strings(request.get("partition"))), type, table.coreOptions().partitionDefaultName()));
        }
        IncrementalClusterManager manager = new IncrementalClusterManager(table, only);
        Map<BinaryRow, CompactUnit> units = manager.createCompactUnits(request.get("full").asBoolean());
        ArrayNode answer = MAPPER.createArrayNode();
        for (Map.Entry<BinaryRow, CompactUnit> unit : units.entrySet()) {
            ObjectNode picked = answer.addObject().put("level", unit.getValue().outputLevel());
            picked.set("partition", Values.toJson(unit.getKey(), table.schema().logicalPartitionType()));
            ArrayNode files = picked.putArray("files");
            unit.getValue().files().forEach(file -> files.add(file.fileName()));
        }
        if (request.has("dry")) return answer;
        List<CommitMessage> messages = new ArrayList<>();
        FileStoreTable target = table.copy(Map.of("write-only", "true"));
        for (Map.Entry<BinaryRow, Pair<List<DataSplit>, CommitMessage>> each :
                manager.toSplitsAndRewriteDvFiles(units).entrySet()) {
            CompactUnit unit = units.get(each.getKey());
            CommitMessageImpl vectors = (CommitMessageImpl) each.getValue().getRight();
            List<DataFileMeta> after = new ArrayList<>();
            IOManager buffers = IOManager.create(System.getProperty("java.io.tmpdir"));
            try (BatchTableWrite write = target.newBatchWriteBuilder().newWrite()) {
                Sorter sorter = Sorter.getSorter(
                        new RecordReaderIterator<>(
                                table.newReadBuilder().newRead().createReader(new ArrayList<>(each.getValue().getLeft()))),
                        buffers,
                        table.rowType(),
                        table.coreOptions());
                MutableObjectIterator<BinaryRow> rows = sorter.sort();
                BinaryRow row = new BinaryRow(sorter.arity());
                while ((row = rows.next(row)) != null) write.write(sorter.removeSortKey(row));
                for (CommitMessage message : write.prepareCommit())
                    after.addAll(((CommitMessageImpl) message).newFilesIncrement().newFiles());
                sorter.close();
            }
            messages.add(new CommitMessageImpl(
                    each.getKey(),
                    0,
                    table.coreOptions().bucket(),
                    DataIncrement.emptyIncrement(),
                    new CompactIncrement(
                            unit.files(),
                            IncrementalClusterManager.upgrade(after, unit.outputLevel()),
                            List.of(),
                            vectors == null ? List.of() : vectors.compactIncrement().newIndexFiles(),
                            vectors == null ? List.of() : vectors.compactIncrement().deletedIndexFiles())));
        }
        try (TableCommitImpl commit = table.newCommit(user)) {
            commit.commit(Long.MAX_VALUE, messages);
        }
        return answer;
    }

    // ----------------------------------------------------------------- tables

    /** {@code fields}: {@code [name, type]}, a type as in a schema file; {@code partition}; {@code options}. */
    private static void create(Catalog catalog, Identifier name, JsonNode request) throws Exception {
        catalog.createDatabase(name.getDatabaseName(), true);
        Schema.Builder builder = Schema.newBuilder();
        AtomicInteger fieldId = new AtomicInteger(-1);
        for (JsonNode field : request.get("fields"))
            builder.column(field.get(0).asText(), DataTypeJsonParser.parseDataType(field.get(1), fieldId));
        builder.partitionKeys(texts(request.get("partition")));
        builder.options(strings(request.get("table_options")));
        catalog.createTable(name, builder.build(), false);
    }

    private static SchemaChange change(JsonNode change) {
        String name = change.get(1).asText();
        switch (change.get(0).asText()) {
            case "add":
                return SchemaChange.addColumn(name, type(change.get(2)));
            case "rename":
                return SchemaChange.renameColumn(name, change.get(2).asText());
            case "drop":
                return SchemaChange.dropColumn(name);
            case "type":
                return SchemaChange.updateColumnType(name, type(change.get(2)));
            case "set":
                return SchemaChange.setOption(name, change.get(2).asText());
            default:
                throw new IllegalArgumentException("unknown change " + change);
        }
    }

    private static DataType type(JsonNode json) {
        return DataTypeJsonParser.parseDataType(json, new AtomicInteger(-1));
    }

    private static List<String> texts(JsonNode json) {
        List<String> result = new ArrayList<>();
        if (json != null) json.forEach(text -> result.add(text.asText()));
        return result;
    }

    private static Map<String, String> strings(JsonNode json) {
        Map<String, String> result = new LinkedHashMap<>();
        if (json != null)
            json.fields().forEachRemaining(
                    field -> result.put(field.getKey(), field.getValue().isNull() ? null : field.getValue().asText()));
        return result;
    }
}
