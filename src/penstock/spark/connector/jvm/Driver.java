package penstock;

import java.io.DataOutput;
import java.io.IOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.lang.reflect.UndeclaredThrowableException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.WritableUtils;
import org.apache.spark.JobArtifactSet$;
import org.apache.spark.JobArtifactState;
import org.apache.spark.SparkContext;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.catalog.BucketSpec;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.CurrentOrigin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.NullOrdering;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.execution.CacheManager;
import org.apache.spark.sql.execution.CachedData;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.datasources.BasicWriteJobStatsTracker;
import org.apache.spark.sql.execution.datasources.BasicWriteJobStatsTracker$;
import org.apache.spark.sql.execution.datasources.BasicWriteTaskStats;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.V1WritesUtils;
import org.apache.spark.sql.execution.datasources.WriteJobDescription;
import org.apache.spark.sql.execution.datasources.WriteTaskResult;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.FileWriterFactory;
import org.apache.spark.sql.execution.streaming.ManifestFileCommitProtocol;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.connector.PredicateUtils;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.InsertableRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.QueryExecutionListener;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.AccumulatorV2;
import org.apache.spark.util.SerializableConfiguration;
import scala.runtime.AbstractFunction0;

/**
 * What would take a call between Python and the JVM for each item, done in the JVM. Stays on the driver: executors do
 * not have these classes.
 */
public class Driver {
    private static final Object NULL = new Object();
    private static final String[] NO_HOSTS = new String[0];
    private static final long MAX_LISTENER_DELAY_MILLIS = 2000L;
    private static final int MAX_PARTITIONS_OF_KEY = 1000;
    private static final ObjectMapper JSON = new ObjectMapper();
    private final Set followed = ConcurrentHashMap.newKeySet();
    private PythonCalls calls;
    private String evolutionError;
    private String mergeError;

    public void setCalls(PythonCalls calls) {
        this.calls = calls;
    }

    /** Have statements that change columns WITH SCHEMA EVOLUTION fail with an error. */
    public void refuseEvolution(String error) {
        evolutionError = error;
    }

    /** Have a MERGE fail with an error that a client of Connect built without text. */
    public void refuseMergesOfConnect(String error) {
        mergeError = error;
    }

    /**
     * Return an object with the interfaces of a Python proxy. It caches answers of Python, and uses the defaults of the
     * interfaces for methods that Python does not define.
     *
     * @param text answer of toString, by which objects are equal; null to ask Python
     * @param methods names of the methods that Python defines
     * @param cached names of methods without parameters whose answers stay the same until a method with parameters is
     *     called
     * @param shared names of methods without parameters that all objects with the same shared answers answer alike
     * @param keys of the partitions of a scan, for transforms; null without any
     */
    public Object proxy(
            Object python, String text, Set methods, Set cached, Set shared, Map sharedAnswers, String keys) {
        Class kind = python.getClass();
        InvocationHandler handler = Proxy.getInvocationHandler(python);
        return Proxy.newProxyInstance(
            kind.getClassLoader(), kind.getInterfaces(),
            new Answers(
                calls, evolutionError, mergeError, handler, text, methods, cached, shared, sharedAnswers, keys));
    }

    /** Return an empty map for the answers that objects share. */
    public Map sharedAnswers() {
        return new ConcurrentHashMap();
    }

    private static class Answers implements InvocationHandler {
        private static final String PLANS = "org.apache.spark.sql.execution.datasources.v2.";
        /** Statements that show or copy the definition of a table. */
        private static final String[] DEFINITIONS = {
            PLANS + "Describe", PLANS + "ShowCreateTable", PLANS + "CreateTableLike"};
        private static final String[] SHOW_CREATE = {PLANS + "ShowCreateTable"};
        private static final Pattern COMMENT = Pattern.compile("\"comment\":\"(?:[^\"\\\\]|\\\\.)*\"");
        private static final Pattern EVOLUTION_TEXT = Pattern.compile("(?i)\\bEVOLUTION\\b");
        private static final String[] EVOLUTIONS = {
            "org.apache.spark.sql.catalyst.analysis.ResolveMergeIntoSchemaEvolution"};
        private static final String CONNECT = "org.apache.spark.sql.connect.";
        private static final int NEAR_CALLS = 8;
        private final PythonCalls calls;
        private final String evolutionError;
        private final String mergeError;
        private final InvocationHandler python;
        private final Set methods;
        private final Set cached;
        private final Set shared;
        private final Map sharedAnswers;
        private final String keys;
        private final Map answers = new ConcurrentHashMap();
        private volatile boolean isStream;

        Answers(PythonCalls calls, String evolutionError, String mergeError, InvocationHandler python, String text,
                Set methods, Set cached, Set shared, Map sharedAnswers, String keys) {
            this.calls = calls;
            this.evolutionError = evolutionError;
            this.mergeError = mergeError;
            this.python = python;
            this.methods = methods;
            this.cached = cached;
            this.shared = shared;
            this.sharedAnswers = sharedAnswers;
            this.keys = keys;
            if (text != null) {
                answers.put("toString", text);
            }
        }

        public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
            String name = method.getName();
            if (method.isDefault() && !methods.contains(name)) {
                return InvocationHandler.invokeDefault(proxy, method, arguments);
            }
            if (name.equals("outputPartitioning")) {
                return partitioning(keys);
            }
            if (name.equals("loadFunction")) {
                return BucketFunction.load((Identifier) arguments[0]);
            }
            if (arguments == null || arguments.length == 0) {
                if (name.equals("columns") && isCalledBy(DEFINITIONS)) {
                    StructType schema = ((Table) proxy).schema();
                    return columns(isShown() ? escaped(schema) : schema);
                }
                if (name.equals("properties") && isShown()) {
                    Map found = new HashMap();
                    Map properties = (Map) calls.invoke(python, proxy, method, null);
                    for (Iterator each = properties.entrySet().iterator(); each.hasNext(); ) {
                        Map.Entry entry = (Map.Entry) each.next();
                        found.put(escaped((String) entry.getKey()), escaped((String) entry.getValue()));
                    }
                    return found;
                }
                if (name.equals("hashCode")) {
                    return Integer.valueOf(proxy.toString().hashCode());
                }
                if (shared.contains(name)) {
                    return answer(sharedAnswers, name, proxy, method);
                }
                if ((cached.contains(name) && !(isStream && name.equals("description"))) || name.equals("toString")) {
                    return answer(answers, name, proxy, method);
                }
            } else if (name.equals("equals")) {
                return Boolean.valueOf(
                    arguments[0] == proxy || (arguments[0] != null && proxy.toString().equals(arguments[0].toString())));
            } else {
                if (evolutionError != null && name.equals("alterTable") && isCalledBy(EVOLUTIONS)) {
                    throw new UnsupportedOperationException(arguments[0] + ": " + evolutionError);
                }
                // A MERGE that only inserts is an append to Spark.
                if (name.equals("newRowLevelOperationBuilder") || name.equals("newWriteBuilder")) {
                    if (evolutionError != null && evolves()) {
                        throw new UnsupportedOperationException(((Table) proxy).name() + ": " + evolutionError);
                    }
                    if (mergeError != null && isMergeOfConnect()) {
                        throw new UnsupportedOperationException(((Table) proxy).name() + ": " + mergeError);
                    }
                }
                // Each micro-batch of a stream has its own.
                isStream = isStream || name.equals("toMicroBatchStream");
                Object text = answers.get("toString");
                answers.clear();
                if (text != null) {
                    answers.put("toString", text);
                }
            }
            return calls.invoke(python, proxy, method, arguments);
        }

        /** Return whether the answer is for SHOW CREATE TABLE, in whose texts Spark escapes quotes but no backslashes. */
        private static boolean isShown() {
            return isCalledBy(SHOW_CREATE) && !SQLConf.get().escapedStringLiterals();
        }

        private static String escaped(String text) {
            return text.replace("\\", "\\\\");
        }

        /** Return a schema with escaped comments, at any depth. */
        private static StructType escaped(StructType schema) {
            Matcher comments = COMMENT.matcher(schema.json());
            StringBuffer json = new StringBuffer();
            while (comments.find()) {
                // In JSON, a backslash is two.
                String twice = comments.group().replace("\\\\", "\\\\\\\\");
                comments.appendReplacement(json, Matcher.quoteReplacement(twice));
            }
            return (StructType) DataType.fromJson(comments.appendTail(json).toString());
        }

        /** Return whether a class of Spark, whose name begins with one of these, is the caller. */
        private static boolean isCalledBy(final String[] names) {
            // Not the trace of an exception, which would have all of the hundreds of calls of an analysis.
            return ((Boolean) StackWalker.getInstance().walk(new Function() {
                public Object apply(Object calls) {
                    for (Iterator each = ((Stream) calls).limit(NEAR_CALLS).iterator(); each.hasNext(); ) {
                        String caller = ((StackWalker.StackFrame) each.next()).getClassName();
                        for (int which = 0; which < names.length; which++) {
                            if (caller.startsWith(names[which])) {
                                return Boolean.TRUE;
                            }
                        }
                    }
                    return Boolean.FALSE;
                }
            })).booleanValue();
        }

        /** Return whether the text of a MERGE says so: Spark 4.0 reads it, and then leaves out new columns. */
        private static boolean evolves() throws Exception {
            scala.Option text = CurrentOrigin.get().sqlText();
            if (text.isEmpty() || !EVOLUTION_TEXT.matcher((String) text.get()).find()) {
                return false;
            }
            return evolves(SparkSession.active().sessionState().sqlParser().parsePlan((String) text.get()));
        }

        private static boolean evolves(TreeNode plan) throws Exception {
            if (plan.nodeName().equals("MergeIntoTable")) {
                return ((Boolean) plan.getClass().getMethod("withSchemaEvolution").invoke(plan)).booleanValue();
            }
            for (scala.collection.Iterator parts = plan.children().iterator(); parts.hasNext(); ) {
                if (evolves((TreeNode) parts.next())) {
                    return true;
                }
            }
            return false;
        }

        private static boolean isMergeOfConnect() {
            StackTraceElement[] calls = new Throwable().getStackTrace();
            for (int place = 0; place < calls.length; place++) {
                if (calls[place].getMethodName().equals("handleMergeIntoTableCommand")) {
                    return true;
                }
            }
            return false;
        }

        private Object answer(Map from, String name, Object proxy, Method method) throws Throwable {
            Object found = from.get(name);
            if (found == null) {
                Object made = calls.invoke(python, proxy, method, null);
                found = made == null ? NULL : made;
                from.put(name, found);
            }
            return found == NULL ? null : found;
        }
    }

    /** Return a relation that throws what its job has thrown: a proxy wraps exceptions that Java calls checked. */
    public InsertableRelation insertable(InsertableRelation python) {
        return new Insertable(python);
    }

    private static class Insertable implements InsertableRelation {
        private final InsertableRelation python;

        Insertable(InsertableRelation python) {
            this.python = python;
        }

        public void insert(Dataset rows, boolean overwrite) {
            try {
                python.insert(rows, overwrite);
            } catch (UndeclaredThrowableException error) {
                Platform.throwException(error.getCause());
            }
        }
    }

    /** Return the columns of a table; newer versions of Spark take in addition whether they keep their ids. */
    private static Object columns(StructType schema) throws Exception {
        Method made = methodOf(CatalogV2Util.class, "structTypeToV2Columns");
        return made.invoke(
            null,
            made.getParameterTypes().length == 1 ? new Object[] {schema} : new Object[] {schema, Boolean.FALSE});
    }

    private static Method methodOf(Class kind, String name) {
        Method[] methods = kind.getMethods();
        for (int i = 0; i < methods.length; i++) {
            if (methods[i].getName().equals(name)) {
                return methods[i];
            }
        }
        return null;
    }

    /** Return the number of parameters of a public method or, without a name, of the longest public constructor. */
    public int parameterCount(Class kind, String method) {
        if (!method.isEmpty()) {
            return methodOf(kind, method).getParameterTypes().length;
        }
        int count = 0;
        for (int i = 0; i < kind.getConstructors().length; i++) {
            count = Math.max(count, kind.getConstructors()[i].getParameterTypes().length);
        }
        return count;
    }

    // Sessions

    /** Return the settings of the active session whose keys have a prefix, by the rest of the key. */
    public String settings(String prefix) throws Exception {
        return settings(SparkSession.active(), prefix);
    }

    /** Return the settings of a session whose keys have a prefix, by the rest of the key. */
    public String settings(SparkSession session, String prefix) throws Exception {
        Map made = new HashMap();
        scala.collection.Iterator all = session.sessionState().conf().getAllConfs().iterator();
        while (all.hasNext()) {
            scala.Tuple2 each = (scala.Tuple2) all.next();
            if (((String) each._1()).startsWith(prefix)) {
                made.put(((String) each._1()).substring(prefix.length()), each._2());
            }
        }
        return JSON.writeValueAsString(made);
    }

    /** Return the settings with which the application was started, in the same way; no session can change them. */
    public String applicationSettings(SparkSession session, String prefix) throws Exception {
        Map made = new HashMap();
        scala.Tuple2[] all = session.sparkContext().getConf().getAllWithPrefix(prefix);
        for (int i = 0; i < all.length; i++) {
            made.put(all[i]._1(), all[i]._2());
        }
        return JSON.writeValueAsString(made);
    }

    /** Make cached queries read a table again that has changed at a location. */
    public void recache(SparkSession session, String location) throws Exception {
        recacheMatching(session, location, false);
    }

    /**
     * Make cached queries read tables again to which the session appends by format("penstock"): Spark commits these
     * rows in a process of its own.
     */
    public void recacheAfterWrites(SparkSession session) {
        if (followed.add(session.sessionUUID())) {
            session.listenerManager().register(new FormatWrites());
        }
    }

    /** Wait until the listeners have seen each write that has ended. */
    public void awaitWrites(SparkSession session) throws Exception {
        if (session.sharedState().cacheManager().isEmpty() || Thread.currentThread() == FormatWrites.recaching) {
            return;
        }
        try {
            session.sparkContext().listenerBus().waitUntilEmpty(MAX_LISTENER_DELAY_MILLIS);
        } catch (TimeoutException error) {
            return;
        }
    }

    /** Follows the writes of a session to tables of the data source in Python. */
    public static class FormatWrites implements QueryExecutionListener {
        private static volatile Thread recaching;

        public void onSuccess(String action, QueryExecution query, long nanos) {
            LogicalPlan plan = query.analyzed();
            if (!(plan instanceof V2WriteCommand)
                    || !(((V2WriteCommand) plan).table() instanceof DataSourceV2Relation)) {
                return;
            }
            DataSourceV2Relation target = (DataSourceV2Relation) ((V2WriteCommand) plan).table();
            if (!target.table().name().equals("penstock")) {
                return;
            }
            recaching = Thread.currentThread();
            try {
                recacheMatching((SparkSession) query.sparkSession(), target.options().get("path"), true);
            } catch (Exception error) {
                Platform.throwException(error);
            } finally {
                recaching = null;
            }
        }

        public void onFailure(String action, QueryExecution query, Exception error) {
        }
    }

    private static void recacheMatching(SparkSession session, String location, boolean sameName) throws Exception {
        CacheManager manager = session.sharedState().cacheManager();
        if (manager.isEmpty()) {
            return;
        }
        Method cached = CacheManager.class.getDeclaredMethod("cachedData", new Class[0]);
        cached.setAccessible(true);
        Set names = new HashSet();
        for (Iterator plans = list(cached.invoke(manager, new Object[0])).iterator(); plans.hasNext();) {
            LogicalPlan plan = ((CachedData) plans.next()).plan();
            for (Iterator leaves = list(plan.collectLeaves()).iterator(); leaves.hasNext();) {
                Object leaf = leaves.next();
                if (leaf instanceof DataSourceV2Relation) {
                    addName(names, (DataSourceV2Relation) leaf, location, sameName);
                }
            }
        }
        // Older versions of Spark return cached rows of the same state of a table only.
        Method recache = methodOf(CacheManager.class, "recacheTableOrView");
        for (Iterator each = names.iterator(); recache != null && each.hasNext();) {
            recache.invoke(manager, new Object[] {session, PythonUtils.toSeq((List) each.next()), Boolean.FALSE});
        }
    }

    /** Add the name of a table at a location or, with sameName, at any location that ends alike; null is any. */
    private static void addName(Set names, DataSourceV2Relation found, String location, boolean sameName) {
        if (!found.catalog().isDefined() || !found.identifier().isDefined()) {
            return;
        }
        Object own = found.table().properties().get("location");
        boolean isMeant = sameName
            ? own != null && (location == null || lastName(location).equals(lastName((String) own)))
            : location.equals(own);
        if (isMeant) {
            Identifier name = (Identifier) found.identifier().get();
            List parts = new ArrayList();
            parts.add(((CatalogPlugin) found.catalog().get()).name());
            parts.addAll(Arrays.asList(name.namespace()));
            parts.add(name.name());
            names.add(parts);
        }
    }

    private static String lastName(String path) {
        String trimmed = path.endsWith("/") ? path.substring(0, path.length() - 1) : path;
        return trimmed.substring(trimmed.lastIndexOf('/') + 1);
    }

    private static List list(Object sequence) {
        return scala.collection.JavaConverters.seqAsJavaList((scala.collection.Seq) sequence);
    }

    /** Return estimates of a scan; a negative number is not known. */
    public Statistics statistics(long bytes, long rows) {
        return new Estimates(bytes, rows);
    }

    private static class Estimates implements Statistics {
        private final long bytes;
        private final long rows;

        Estimates(long bytes, long rows) {
            this.bytes = bytes;
            this.rows = rows;
        }

        public OptionalLong sizeInBytes() {
            return bytes < 0 ? OptionalLong.empty() : OptionalLong.of(bytes);
        }

        public OptionalLong numRows() {
            return rows < 0 ? OptionalLong.empty() : OptionalLong.of(rows);
        }

        public Map columnStats() {
            return new HashMap();
        }
    }

    // Texts, each of which is one answer to Python instead of one for each element

    public String options(Map options) throws Exception {
        return JSON.writeValueAsString(new HashMap(options));
    }

    public String name(Identifier identifier) throws Exception {
        List parts = new ArrayList(Arrays.asList(identifier.namespace()));
        parts.add(identifier.name());
        return JSON.writeValueAsString(parts);
    }

    /** Return columns as expressions, by a list of their quoted names in JSON. */
    public NamedReference[] references(String names) throws Exception {
        List all = (List) JSON.readValue(names, List.class);
        NamedReference[] made = new NamedReference[all.size()];
        for (int i = 0; i < made.length; i++) {
            made[i] = Expressions.column((String) all.get(i));
        }
        return made;
    }

    /** Return predicates as JSON: {"name", "children"}, {"column"}, {"value", "type"}; other expressions are {}. */
    public String predicates(Predicate[] predicates) throws Exception {
        List made = new ArrayList();
        for (int i = 0; i < predicates.length; i++) {
            made.add(node(predicates[i]));
        }
        return JSON.writeValueAsString(made);
    }

    /** Return an aggregation as JSON: columns of the groups, empty for expressions; functions with their columns. */
    public String aggregation(Aggregation aggregation) throws Exception {
        List functions = new ArrayList();
        AggregateFunc[] all = aggregation.aggregateExpressions();
        for (int i = 0; i < all.length; i++) {
            Map made = new HashMap();
            made.put("kind", all[i].getClass().getSimpleName());
            made.put("distinct", Boolean.valueOf(all[i] instanceof Count && ((Count) all[i]).isDistinct()));
            Expression[] children = all[i].children();
            if (children.length == 1 && children[0] instanceof NamedReference) {
                made.put("column", ((NamedReference) children[0]).fieldNames());
            }
            functions.add(made);
        }
        Map made = new HashMap();
        List groups = new ArrayList();
        for (int i = 0; i < aggregation.groupByExpressions().length; i++) {
            Expression group = aggregation.groupByExpressions()[i];
            groups.add(group instanceof NamedReference ? ((NamedReference) group).fieldNames() : new String[0]);
        }
        made.put("groups", groups);
        made.put("functions", functions);
        return JSON.writeValueAsString(made);
    }

    private Map node(Expression expression) {
        Map made = new HashMap();
        if (expression instanceof NamedReference) {
            made.put("column", ((NamedReference) expression).fieldNames());
        } else if (expression instanceof Literal) {
            Object value = ((Literal) expression).value();
            made.put("type", ((Literal) expression).dataType().simpleString());
            // A Float as the text of the Double that is equal to it.
            Object text = value instanceof Float ? (Object) Double.valueOf(((Float) value).doubleValue()) : value;
            made.put("value", value == null || value instanceof byte[] ? value : text.toString());
        } else if (expression instanceof Predicate) {
            made.put("name", ((Predicate) expression).name());
            Expression[] children = expression.children();
            List nodes = new ArrayList();
            for (int i = 0; i < children.length; i++) {
                nodes.add(node(children[i]));
            }
            made.put("children", nodes);
        }
        return made;
    }

    /** Return some of the predicates, by their places with commas between. */
    public Predicate[] chosen(Predicate[] predicates, String places) {
        String[] parts = places.isEmpty() ? new String[0] : places.split(",");
        Predicate[] made = new Predicate[parts.length];
        for (int i = 0; i < parts.length; i++) {
            made[i] = predicates[Integer.parseInt(parts[i])];
        }
        return made;
    }

    /**
     * Return some of the predicates as filters of Spark's file readers; those that there are none for are left out. Each
     * filter is equivalent to its predicate, so readers skip no row that matches.
     */
    public Filter[] filters(Predicate[] predicates, String places) {
        Predicate[] parts = chosen(predicates, places);
        List made = new ArrayList();
        for (int i = 0; i < parts.length; i++) {
            if (hasFilter(parts[i])) {
                made.add(PredicateUtils.toV1(parts[i]).get());
            }
        }
        return (Filter[]) made.toArray(new Filter[0]);
    }

    /** Return whether all parts have filters: Spark's conversion leaves out sides of AND and OR that have none. */
    private static boolean hasFilter(Predicate predicate) {
        String name = predicate.name();
        if (name.equals("AND") || name.equals("OR") || name.equals("NOT")) {
            Expression[] parts = predicate.children();
            for (int i = 0; i < parts.length; i++) {
                if (!(parts[i] instanceof Predicate) || !hasFilter((Predicate) parts[i])) {
                    return false;
                }
            }
        }
        return PredicateUtils.toV1(predicate).isDefined();
    }

    /** Return the first column of an order, whether it descends, and whether nulls come first, in JSON. */
    public String firstOrder(SortOrder[] orders) throws Exception {
        Expression by = orders[0].expression();
        List made = new ArrayList();
        String[] names = by instanceof NamedReference ? ((NamedReference) by).fieldNames() : new String[0];
        made.add(names.length == 1 ? names[0] : null);
        made.add(Boolean.valueOf(orders[0].direction() == SortDirection.DESCENDING));
        made.add(Boolean.valueOf(orders[0].nullOrdering() == NullOrdering.NULLS_FIRST));
        return JSON.writeValueAsString(made);
    }

    // Keys of partitions

    /**
     * Return the keys that all rows of a partition share.
     *
     * @param keys a column a line, and behind a tabulator the name of the function of it
     */
    private static Partitioning partitioning(String keys) {
        // To shuffle the other side of a join only, executors would have to compute buckets.
        if (keys == null || !SQLConf.get().v2BucketingEnabled() || keys.indexOf('\t') >= 0
                && SQLConf.get().getConfString("spark.sql.sources.v2.bucketing.shuffle.enabled", "false").equals("true")) {
            return new UnknownPartitioning(0);
        }
        String[] lines = keys.split("\n");
        Transform[] made = new Transform[lines.length];
        for (int i = 0; i < lines.length; i++) {
            int end = lines[i].indexOf('\t');
            made[i] = end < 0
                ? Expressions.identity(lines[i])
                : Expressions.apply(
                    lines[i].substring(end + 1), new Expression[] {Expressions.column(lines[i].substring(0, end))});
        }
        return new KeyGroupedPartitioning(made, 0);
    }

    /** The function from a column to its bucket. Spark compares its names, and executors do not call it. */
    private static class BucketFunction implements UnboundFunction, BoundFunction {
        private static final String PREFIX = "penstock_bucket_";
        private final String name;
        private final DataType column;

        BucketFunction(String name, DataType column) {
            this.name = name;
            this.column = column;
        }

        static BucketFunction load(Identifier ident) throws NoSuchFunctionException {
            if (ident.namespace().length > 0 || !ident.name().startsWith(PREFIX)) {
                throw new NoSuchFunctionException(ident);
            }
            return new BucketFunction(ident.name(), null);
        }

        public BoundFunction bind(StructType columns) {
            if (columns.length() != 1) {
                throw new UnsupportedOperationException(name + " has one argument");
            }
            return new BucketFunction(name, columns.apply(0).dataType());
        }

        public String name() {
            return name;
        }

        public String description() {
            return name + ": the bucket of a row";
        }

        public String canonicalName() {
            return name;
        }

        public DataType[] inputTypes() {
            return new DataType[] {column};
        }

        public DataType resultType() {
            return DataTypes.IntegerType;
        }

        public boolean equals(Object other) {
            return other instanceof BucketFunction && ((BucketFunction) other).name.equals(name);
        }

        public int hashCode() {
            return name.hashCode();
        }

        public String toString() {
            return name;
        }

        /** Executors do not have this class; they get plans with the function, and do not use it. */
        protected Object writeReplace() {
            return null;
        }
    }

    /**
     * Return partitions whose rows share keys; without them, as packed does, if the keys have so few bytes that tasks
     * for each of them would cost more than an exchange, or so many that one task for each would take too long.
     *
     * @param text a run of files for each key, as for ordered, after a line with the values of the key in JSON
     * @param cells types of the values, with commas between
     * @param bytes of all files of the scan before runtime filters, which must not change the partitions that are left
     * @param count of these files
     * @param keys number of keys of these files
     * @param groupsScans whether Spark reads a key in one task although a query has no use for that
     */
    public InputPartition[] keyed(
            SparkSession session, String text, String cells, long bytes, int count, int keys, boolean groupsScans)
            throws Exception {
        SQLConf conf = session.sessionState().conf();
        FileList files = new FileList(text, true);
        double mostBytes = (double) MAX_PARTITIONS_OF_KEY * conf.filesMaxPartitionBytes() * keys;
        boolean isWorthIt = conf.v2BucketingEnabled() && bytes >= keys * conf.filesOpenCostInBytes() && bytes <= mostBytes
            && (!groupsScans || keys >= session.leafNodeDefaultParallelism());
        if (!isWorthIt) {
            return packed(session, files);
        }
        long most = splitBytes(session, conf, bytes + count * conf.filesOpenCostInBytes());
        List made = new ArrayList();
        for (int run = 0, start = 0; run < files.runs; start = files.ends[run++]) {
            InternalRow key = row((List) JSON.readValue((String) files.keys.get(run), List.class), cells.split(","));
            made.addAll(packed(conf, files, start, files.ends[run], most, key));
        }
        return (InputPartition[]) made.toArray(new InputPartition[0]);
    }

    /** Return rows, in JSON a list of lists. */
    public InternalRow[] rows(String text, String cells) throws Exception {
        List rows = (List) JSON.readValue(text, List.class);
        InternalRow[] made = new InternalRow[rows.size()];
        for (int i = 0; i < made.length; i++) {
            made[i] = row((List) rows.get(i), cells.split(","));
        }
        return made;
    }

    private static InternalRow row(List values, String[] cells) {
        Object[] made = new Object[cells.length];
        for (int i = 0; i < cells.length; i++) {
            made[i] = cell(cells[i], values.get(i));
        }
        return new GenericInternalRow(made);
    }

    private static Object cell(String kind, Object value) {
        if (value == null || kind == null) {
            return value instanceof String ? UTF8String.fromString((String) value) : value;
        }
        String text = value.toString();
        if (kind.equals("text")) {
            return UTF8String.fromString(text);
        } else if (kind.equals("binary")) {
            return Base64.getDecoder().decode(text);
        } else if (kind.equals("long")) {
            return Long.valueOf(text);
        } else if (kind.equals("short")) {
            return Short.valueOf(text);
        } else if (kind.equals("byte")) {
            return Byte.valueOf(text);
        } else if (kind.equals("double")) {
            return Double.valueOf(text);
        } else if (kind.equals("float")) {
            return Float.valueOf(text);
        } else if (kind.startsWith("decimal")) {
            String[] digits = kind.split(" ");
            return Decimal.apply(new BigDecimal(text), Integer.parseInt(digits[1]), Integer.parseInt(digits[2]));
        }
        return value;
    }

    // Rules of the optimizer

    /** Add a rule to the optimizer of a session, once. */
    public void addRule(SparkSession session, Object rule) {
        List rules = new ArrayList();
        scala.collection.Iterator known = session.experimental().extraOptimizations().iterator();
        while (known.hasNext()) {
            Object each = known.next();
            if (each == rule) {
                return;
            }
            rules.add(each);
        }
        rules.add(rule);
        session.experimental().extraOptimizations_$eq(PythonUtils.toSeq(rules));
    }

    // Classes of executors

    /** Return the id of the application and that of the session whose own jars its tasks load, empty if it has none. */
    public String[] jarOwners(SparkContext context) {
        scala.Option state = JobArtifactSet$.MODULE$.getCurrentJobArtifactState();
        String session = state.isEmpty() ? "" : ((JobArtifactState) state.get()).uuid();
        return new String[] {context.applicationId(), session};
    }

    /** Have tasks of the application, or else of this session, load classes from one more jar. */
    public void addJar(final SparkContext context, final String path, boolean isOfApplication) {
        if (!isOfApplication) {
            context.addJar(path);
            return;
        }
        JobArtifactSet$.MODULE$.withActiveJobArtifactState(null, new AbstractFunction0() {
            public Object apply() {
                context.addJar(path);
                return null;
            }
        });
    }

    // Partitions of files

    /**
     * Return one partition for each run of files, which keep their order.
     *
     * @param text a line with the URI of a directory before its files; for each file a line with the last part of its
     *     URI, size in bytes, types and values of constant columns in JSON, and tag, with tabulators between; an empty
     *     line ends a run; or a tabulator and the path of a file with such text
     */
    public InputPartition[] ordered(String text) throws Exception {
        FileList files = new FileList(text, false);
        InputPartition[] made = new InputPartition[files.runs];
        Pieces pieces = new Pieces(files, files.count);
        for (int run = 0; run < files.runs; run++) {
            int start = pieces.count;
            while (pieces.count < files.ends[run]) {
                pieces.add(pieces.count, 0, files.sizes[pieces.count]);
            }
            made[run] = new LazyPartition(run, pieces, start, pieces.count);
        }
        return made;
    }

    /**
     * Return partitions of about equal size, as Spark's own scans have them: large files are split, small files share
     * a partition.
     *
     * @param text as for ordered, without empty lines
     */
    public InputPartition[] packed(SparkSession session, String text) throws Exception {
        return packed(session, new FileList(text, false));
    }

    private static InputPartition[] packed(SparkSession session, FileList files) {
        SQLConf conf = session.sessionState().conf();
        long total = files.count * conf.filesOpenCostInBytes();
        for (int i = 0; i < files.count; i++) {
            total += files.sizes[i];
        }
        List made = packed(conf, files, 0, files.count, splitBytes(session, conf, total), null);
        return (InputPartition[]) made.toArray(new InputPartition[0]);
    }

    /** Return the partitions of both arrays. */
    public InputPartition[] joined(InputPartition[] first, InputPartition[] second) {
        InputPartition[] all = (InputPartition[]) Arrays.copyOf(first, first.length + second.length);
        System.arraycopy(second, 0, all, first.length, second.length);
        return all;
    }

    private static List packed(SQLConf conf, FileList files, int start, int end, long most, InternalRow key) {
        Pieces pieces = new Pieces(files, end - start);
        Pieces smaller = new Pieces(files, end - start);
        for (int i = start; i < end; i++) {
            long size = files.sizes[i];
            for (long from = 0; from == 0 || from < size; from += most) {
                long length = Math.min(most, size - from);
                (length == most ? pieces : smaller).add(i, from, length);
            }
        }
        // Spark fills one partition after the other, and takes the largest files first.
        int[] order = smaller.largestFirst();
        for (int i = 0; i < order.length; i++) {
            pieces.add(smaller.files[order[i]], smaller.starts[order[i]], smaller.lengths[order[i]]);
        }
        List made = pieces.packed(most, conf.filesOpenCostInBytes(), key);
        scala.Option allowed = conf.filesMaxPartitionNum();
        if (allowed.isDefined() && made.size() > ((Number) allowed.get()).intValue()) {
            long total = pieces.count * conf.filesOpenCostInBytes();
            for (int i = 0; i < pieces.count; i++) {
                total += pieces.lengths[i];
            }
            int number = ((Number) allowed.get()).intValue();
            made = pieces.packed((total + number - 1) / number, conf.filesOpenCostInBytes(), key);
        }
        return made;
    }

    /** The rule of FilePartition.maxSplitBytes, which cannot be called with a number. */
    private static long splitBytes(SparkSession session, SQLConf conf, long total) {
        scala.Option wanted = conf.filesMinPartitionNum();
        int tasks = wanted.isDefined() ? ((Number) wanted.get()).intValue() : session.leafNodeDefaultParallelism();
        return Math.min(conf.filesMaxPartitionBytes(), Math.max(conf.filesOpenCostInBytes(), total / tasks));
    }

    /** Files in the order of their text, which is read again for those that a task gets. */
    private static class FileList {
        final List keys = new ArrayList();
        int[] ends = new int[8];
        int runs;
        long[] sizes;
        int count;
        private final String text;
        private int[] lines;
        private int[] directories;

        /**
         * @param listed as for ordered
         * @param hasKeys whether each run begins with a line that is its key
         */
        FileList(String listed, boolean hasKeys) throws IOException {
            text = listed.startsWith("\t")
                ? new String(Files.readAllBytes(Paths.get(listed.substring(1), new String[0])), StandardCharsets.UTF_8)
                : listed;
            int expected = text.length() / 64 + 8;
            sizes = new long[expected];
            lines = new int[expected];
            directories = new int[expected];
            boolean isKey = hasKeys;
            int directory = 0;
            for (int line = 0, end = 0; line < text.length(); line = end + 1) {
                end = endOf(line);
                int tab = text.indexOf('\t', line);
                if (end == line) {
                    endRun();
                    isKey = hasKeys;
                } else if (isKey) {
                    keys.add(text.substring(line, end));
                    isKey = false;
                } else if (tab < 0 || tab > end) {
                    directory = line;
                } else {
                    add(line, directory, tab + 1);
                }
            }
            if (!text.isEmpty()) {
                endRun();
            }
        }

        private int endOf(int line) {
            int end = text.indexOf('\n', line);
            return end < 0 ? text.length() : end;
        }

        private void endRun() {
            ends = runs == ends.length ? Arrays.copyOf(ends, 2 * runs) : ends;
            ends[runs++] = count;
        }

        private void add(int line, int directory, int digits) {
            if (count == sizes.length) {
                sizes = Arrays.copyOf(sizes, 2 * count);
                lines = Arrays.copyOf(lines, 2 * count);
                directories = Arrays.copyOf(directories, 2 * count);
            }
            long size = 0;
            for (int i = digits; text.charAt(i) != '\t'; i++) {
                if (text.charAt(i) < '0' || text.charAt(i) > '9') {
                    throw new NumberFormatException("size of " + text.substring(line, endOf(line)));
                }
                size = 10 * size + (text.charAt(i) - '0');
            }
            sizes[count] = size;
            lines[count] = line;
            directories[count++] = directory;
        }

        /** Return a part of a file. */
        PartitionedFile part(int number, long start, long length) throws IOException {
            String[] fields = text.substring(lines[number], endOf(lines[number])).split("\t", 4);
            InternalRow row = InternalRow.empty();
            if (!fields[2].isEmpty()) {
                List parts = (List) JSON.readValue(fields[2], List.class);
                row = row((List) parts.get(1), (String[]) ((List) parts.get(0)).toArray(new String[0]));
            }
            scala.collection.immutable.Map tags = scala.collection.immutable.Map$.MODULE$.empty();
            if (!fields[3].isEmpty()) {
                tags = (scala.collection.immutable.Map) tags.updated("penstock", fields[3]);
            }
            String directory = text.substring(directories[number], endOf(directories[number]));
            SparkPath path = SparkPath.fromUrlString(directory + "/" + fields[0]);
            return new PartitionedFile(row, path, start, length, NO_HOSTS, 0L, sizes[number], tags);
        }
    }

    /** Parts of files, in the order of the tasks that read them. */
    private static class Pieces {
        final FileList list;
        int[] files;
        long[] starts;
        long[] lengths;
        int count;

        Pieces(FileList list, int size) {
            this.list = list;
            files = new int[size];
            starts = new long[size];
            lengths = new long[size];
        }

        void add(int file, long start, long length) {
            if (count == files.length) {
                files = Arrays.copyOf(files, 2 * count + 1);
                starts = Arrays.copyOf(starts, 2 * count + 1);
                lengths = Arrays.copyOf(lengths, 2 * count + 1);
            }
            files[count] = file;
            starts[count] = start;
            lengths[count++] = length;
        }

        /** Return the order by length, the largest first; pieces of one length keep their order. */
        int[] largestFirst() {
            int[] order = new int[count];
            long longest = 0;
            for (int i = 0; i < count; i++) {
                order[i] = i;
                longest = Math.max(longest, lengths[i]);
            }
            // By the lower half of the length, and then by the upper one: numbers are sorted in a tenth of the time of
            // objects.
            for (int shift = 0; shift <= 32 && longest >>> shift > 0; shift += 32) {
                long[] keys = new long[count];
                for (int i = 0; i < count; i++) {
                    keys[i] = (~(lengths[order[i]] >>> shift) & 0xFFFFFFFFL) << 31 | i;
                }
                Arrays.sort(keys);
                int[] sorted = new int[count];
                for (int i = 0; i < count; i++) {
                    sorted[i] = order[(int) keys[i] & Integer.MAX_VALUE];
                }
                order = sorted;
            }
            return order;
        }

        /** Return partitions by the rule of FilePartition.getFilePartitions, which takes an object for each piece. */
        List packed(long most, long openBytes, InternalRow key) {
            List made = new ArrayList();
            long bytes = 0;
            int start = 0;
            for (int i = 0; i < count; i++) {
                if (i > start && bytes + lengths[i] > most) {
                    made.add(partition(made.size(), start, i, key));
                    start = i;
                    bytes = 0;
                }
                bytes += lengths[i] + openBytes;
            }
            if (start < count) {
                made.add(partition(made.size(), start, count, key));
            }
            return made;
        }

        private LazyPartition partition(int index, int from, int to, InternalRow key) {
            return key == null ? new LazyPartition(index, this, from, to)
                : new KeyedPartition(index, this, from, to, key);
        }
    }

    /**
     * A partition whose files become objects when a task is sent to an executor, which gets a FilePartition. Janino
     * renames private methods, so that Java would not find writeReplace.
     */
    private static class LazyPartition implements InputPartition {
        private final int index;
        private final Pieces pieces;
        private final int start;
        private final int end;

        LazyPartition(int index, Pieces pieces, int start, int end) {
            this.index = index;
            this.pieces = pieces;
            this.start = start;
            this.end = end;
        }

        protected Object writeReplace() throws IOException {
            PartitionedFile[] files = new PartitionedFile[end - start];
            for (int i = 0; i < files.length; i++) {
                int at = start + i;
                files[i] = pieces.list.part(pieces.files[at], pieces.starts[at], pieces.lengths[at]);
            }
            return new FilePartition(index, files);
        }
    }

    private static class KeyedPartition extends LazyPartition implements HasPartitionKey {
        private final InternalRow key;

        KeyedPartition(int index, Pieces pieces, int start, int end, InternalRow key) {
            super(index, pieces, start, end);
            this.key = key;
        }

        public InternalRow partitionKey() {
            return key;
        }
    }

    // Writes of files

    /** Return the numbers of rows that a summary of a write has, by the names of its methods. */
    public String counts(Object summary) throws Exception {
        Map made = new HashMap();
        Method[] methods = summary == null ? new Method[0] : summary.getClass().getMethods();
        for (int i = 0; i < methods.length; i++) {
            if (methods[i].getName().startsWith("num") && methods[i].getParameterTypes().length == 0) {
                made.put(methods[i].getName(), methods[i].invoke(summary, new Object[0]));
            }
        }
        return JSON.writeValueAsString(made);
    }

    /**
     * Return what the tasks of a write to files have returned: the number of rows, and the names of the files, by line.
     *
     * The tasks run {@code ManifestFileCommitProtocol}, whose messages are lists of {@code SinkFileStatus}, which begin
     * with the URI of a file.
     */
    public String writtenFiles(WriterCommitMessage[] messages) {
        long rows = 0;
        StringBuilder names = new StringBuilder();
        for (int i = 0; i < messages.length; i++) {
            WriteTaskResult result = (WriteTaskResult) messages[i];
            scala.collection.Iterator stats = result.summary().stats().iterator();
            while (stats.hasNext()) {
                rows += ((BasicWriteTaskStats) stats.next()).numRows();
            }
            scala.collection.Iterator files = ((scala.collection.Seq) result.commitMsg().obj()).iterator();
            while (files.hasNext()) {
                String uri = (String) ((scala.Product) files.next()).productElement(0);
                names.append('\n').append(uri.substring(uri.lastIndexOf('/') + 1));
            }
        }
        return rows + names.toString();
    }

    /** Return the streaming query on whose thread Spark has called; null if it is not found. */
    public Object runningStream(SparkSession session) {
        String id = SparkContext.getOrCreate().getLocalProperty("sql.streaming.queryId");
        return id == null ? null : session.sharedState().activeStreamingQueries().get(UUID.fromString(id));
    }

    /** Return how many rows the scans of a text have returned in a running statement; 0 if its plan has none. */
    public long scannedRows(String executionId, String scan) throws Exception {
        QueryExecution query = SQLExecution.getQueryExecution(Long.parseLong(executionId));
        List plans = new ArrayList();
        if (query != null) {
            plans.add(query.executedPlan());
        }
        Map scans = new IdentityHashMap();
        long rows = 0;
        while (!plans.isEmpty()) {
            SparkPlan plan = (SparkPlan) plans.remove(plans.size() - 1);
            if (plan instanceof AdaptiveSparkPlanExec) {
                plans.add(((AdaptiveSparkPlanExec) plan).executedPlan());
                // It has scans that have run, and whose rows the rest of the plan does not need.
                plans.add(((AdaptiveSparkPlanExec) plan).initialPlan());
            } else if (plan instanceof QueryStageExec) {
                plans.add(((QueryStageExec) plan).plan());
            } else if (plan.getClass().getSimpleName().equals("EmptyRelationExec")) {
                // Of Spark 4: it stands for stages that have run, and have returned no rows.
                Method logical = plan.getClass().getMethod("logical", new Class[0]);
                Iterator leaves = list(((LogicalPlan) logical.invoke(plan, new Object[0])).collectLeaves()).iterator();
                while (leaves.hasNext()) {
                    Object leaf = leaves.next();
                    if (leaf instanceof LogicalQueryStage) {
                        plans.add(((LogicalQueryStage) leaf).physicalPlan());
                    }
                }
            } else if (plan instanceof BatchScanExec && ((BatchScanExec) plan).scan().toString().equals(scan)
                    && scans.put(plan, scan) == null) {
                Object scanned = ((AccumulatorV2) plan.metrics().get("numOutputRows").get()).value();
                rows += ((Number) scanned).longValue();
            }
            plans.addAll(list(plan.children()));
        }
        return rows;
    }

    /**
     * Return a factory whose writers have the same configuration of Hadoop once, and without the source of each value:
     * Hadoop compresses each of these sources alone (design/0007).
     *
     * @param factory of a write of Spark's file sources
     */
    public DataWriterFactory withoutSources(DataWriterFactory factory) {
        FileWriterFactory whole = (FileWriterFactory) factory;
        WriteJobDescription job = whole.description();
        SerializableConfiguration configuration =
            new SerializableConfiguration(new UnsourcedConfiguration(job.serializableHadoopConf().value()));
        List trackers = new ArrayList();
        trackers.add(new BasicWriteJobStatsTracker(configuration, BasicWriteJobStatsTracker$.MODULE$.metrics()));
        WriteJobDescription made = new WriteJobDescription(
            job.uuid(), configuration, job.outputWriterFactory(), job.allColumns(), job.dataColumns(),
            job.partitionColumns(), job.bucketSpec(), job.path(), job.customPartitionLocations(),
            job.maxRecordsPerFile(), job.timeZoneId(), PythonUtils.toSeq(trackers));
        return new FileWriterFactory(made, whole.committer());
    }

    /** What Hadoop reads from it is a configuration with the same keys and values. */
    private static class UnsourcedConfiguration extends Configuration {
        UnsourcedConfiguration(Configuration other) {
            super(other);
        }

        public void write(DataOutput out) throws IOException {
            Properties all = getProps();
            WritableUtils.writeVInt(out, all.size());
            for (Iterator each = all.entrySet().iterator(); each.hasNext(); ) {
                Map.Entry entry = (Map.Entry) each.next();
                Text.writeString(out, (String) entry.getKey());
                Text.writeString(out, (String) entry.getValue());
                WritableUtils.writeCompressedStringArray(out, null);
            }
        }
    }

    /**
     * Return a factory whose writers write into a directory itself, under names of their attempt, which they return; see
     * {@code writtenFiles}.
     *
     * @param factory of writers of the same files, in any directory
     */
    public DataWriterFactory intoDirectory(DataWriterFactory factory, String job, String directory) {
        WriteJobDescription description = ((FileWriterFactory) factory).description();
        return new FileWriterFactory(description, new ManifestFileCommitProtocol(job, directory));
    }

    /**
     * Return a factory whose writers begin a file for each partition, in a directory of its own; rows have to come
     * sorted by partition. A directory cannot show whether a text is NULL or empty, so the names of files have a hash.
     *
     * @param factory of a write without partitions
     * @param places of the partition columns, with commas between; the files have these columns, too
     */
    public DataWriterFactory byPartition(SparkSession session, DataWriterFactory factory, String places) {
        FileWriterFactory whole = (FileWriterFactory) factory;
        WriteJobDescription job = whole.description();
        List keys = new ArrayList();
        List names = new ArrayList();
        String[] parts = places.split(",");
        for (int i = 0; i < parts.length; i++) {
            Attribute key = (Attribute) job.allColumns().apply(Integer.parseInt(parts[i]));
            keys.add(key);
            names.add(key.name());
        }
        BucketSpec hash = new BucketSpec(session.sessionState().conf().bucketingMaxBuckets(), PythonUtils.toSeq(names), PythonUtils.toSeq(new ArrayList()));
        WriteJobDescription made = new WriteJobDescription(
            job.uuid(), job.serializableHadoopConf(), job.outputWriterFactory(),
            job.allColumns(), job.dataColumns(), PythonUtils.toSeq(keys),
            V1WritesUtils.getWriterBucketSpec(scala.Option.apply(hash), job.allColumns(),
            scala.collection.immutable.Map$.MODULE$.empty()), job.path(), job.customPartitionLocations(),
            job.maxRecordsPerFile(), job.timeZoneId(), job.statsTrackers());
        return new FileWriterFactory(made, whole.committer());
    }
}
