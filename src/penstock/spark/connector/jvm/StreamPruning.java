package penstock;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;

/**
 * Pushes filters and columns of a micro-batch down to its source, which Spark does for batches only. Spark still applies
 * the filters to each row. The source gets them with the start of the micro-batch, when Spark asks it for partitions;
 * offsets of checkpoints are others, so a filter cannot change them. Stays on the driver.
 */
public class StreamPruning extends Rule {
    /** How proxies of sources begin their texts. */
    private static final String SOURCE = "TableStream[";
    private final ObjectMapper json = new ObjectMapper();
    private Driver driver;

    public void setDriver(Driver driver) {
        this.driver = driver;
    }

    public LogicalPlan apply(LogicalPlan plan) {
        Map counts = new IdentityHashMap();
        count(plan, counts);
        return counts.isEmpty() ? plan : rewritten(plan, counts);
    }

    /** Some compilers call this one: the parameter of the generic method is a node. */
    public org.apache.spark.sql.catalyst.trees.TreeNode apply(org.apache.spark.sql.catalyst.trees.TreeNode plan) {
        return apply((LogicalPlan) plan);
    }

    private static void count(LogicalPlan plan, Map counts) {
        if (isOfSource(plan)) {
            Object source = ((StreamingDataSourceV2ScanRelation) plan).stream();
            counts.put(source, Integer.valueOf(counts.containsKey(source) ? 2 : 1));
            checkColumns(((StreamingDataSourceV2ScanRelation) plan).output().iterator());
        }
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            count((LogicalPlan) children.next(), counts);
        }
    }

    /** Spark would take them from rows that do not have them: scans of streams do not hear of them. */
    private static void checkColumns(scala.collection.Iterator columns) {
        while (columns.hasNext()) {
            Attribute column = (Attribute) columns.next();
            if (column.metadata().contains("__metadata_col")) {
                throw new UnsupportedOperationException(
                    "a stream does not return " + column.name() + ": read it in a batch query");
            }
        }
    }

    private static boolean isOfSource(LogicalPlan plan) {
        if (!(plan instanceof StreamingDataSourceV2ScanRelation)) {
            return false;
        }
        StreamingDataSourceV2ScanRelation relation = (StreamingDataSourceV2ScanRelation) plan;
        return relation.startOffset().isDefined() && Proxy.isProxyClass(relation.stream().getClass())
            && relation.stream().toString().startsWith(SOURCE);
    }

    private LogicalPlan rewritten(LogicalPlan plan, Map counts) {
        Project project = plan instanceof Project ? (Project) plan : null;
        LogicalPlan below = project == null ? plan : project.child();
        Filter filter = below instanceof Filter ? (Filter) below : null;
        LogicalPlan leaf = filter == null ? below : filter.child();
        if (leaf != plan && isOfSource(leaf)) {
            LogicalPlan pruned = pruned(project, filter, (StreamingDataSourceV2ScanRelation) leaf, counts);
            if (pruned == leaf) {
                return plan;
            }
            LogicalPlan filtered = filter == null ? pruned : with(filter, pruned);
            return project == null ? filtered : with(project, filtered);
        }
        List children = new ArrayList();
        boolean isChanged = false;
        scala.collection.Iterator old = plan.children().iterator();
        while (old.hasNext()) {
            LogicalPlan child = (LogicalPlan) old.next();
            LogicalPlan made = rewritten(child, counts);
            isChanged = isChanged || made != child;
            children.add(made);
        }
        return isChanged ? (LogicalPlan) plan.withNewChildren(PythonUtils.toSeq(children)) : plan;
    }

    private static LogicalPlan with(LogicalPlan plan, LogicalPlan child) {
        List children = new ArrayList();
        children.add(child);
        return (LogicalPlan) plan.withNewChildren(PythonUtils.toSeq(children));
    }

    private LogicalPlan pruned(
            Project project, Filter filter, StreamingDataSourceV2ScanRelation relation, Map counts) {
        Offset start = (Offset) relation.startOffset().get();
        // Spark takes scans of one source as equal, and would use the rows of one of them for the others.
        boolean isOnlyOne = ((Integer) counts.get(relation.stream())).intValue() == 1;
        if (!isOnlyOne || start instanceof PrunedStart) {
            return relation;
        }
        List columns = new ArrayList();
        List names = new ArrayList();
        scala.collection.Iterator all = relation.output().iterator();
        while (all.hasNext()) {
            Attribute column = (Attribute) all.next();
            if (project == null || uses(project, column) || (filter != null && uses(filter, column))) {
                columns.add(column);
                names.add(column.name());
            }
        }
        if (columns.isEmpty()) {
            // Readers of files need one to count rows.
            Attribute first = (Attribute) relation.output().apply(0);
            columns.add(first);
            names.add(first.name());
        }
        List predicates = new ArrayList();
        if (filter != null && filter.condition().deterministic()) {
            translate(filter.condition(), predicates);
        }
        if (predicates.isEmpty() && columns.size() == relation.output().size()) {
            return relation;
        }
        String text;
        try {
            text = "[" + start.json() + "," + json.writeValueAsString(names) + ","
                + driver.predicates((Predicate[]) predicates.toArray(new Predicate[0])) + "]";
        } catch (Exception failure) {
            return relation;
        }
        Object[] arguments = new Object[relation.productArity()];
        for (int i = 0; i < arguments.length; i++) {
            Object argument = relation.productElement(i);
            if (argument == relation.output()) {
                arguments[i] = PythonUtils.toSeq(columns);
            } else if (argument == relation.startOffset()) {
                arguments[i] = scala.Option.apply(new PrunedStart(start, text));
            } else {
                arguments[i] = argument;
            }
        }
        return (LogicalPlan) relation.makeCopy(arguments);
    }

    private static boolean uses(LogicalPlan plan, Attribute column) {
        AttributeSet used = plan.references();
        return used.contains(column);
    }

    private static void translate(Expression condition, List predicates) {
        if (condition instanceof And) {
            translate(((And) condition).left(), predicates);
            translate(((And) condition).right(), predicates);
            return;
        }
        scala.Option predicate = DataSourceV2Strategy$.MODULE$.translateFilterV2(condition);
        if (predicate.isDefined()) {
            predicates.add(predicate.get());
        }
    }

    /** The start of a micro-batch, with what it needs: in JSON a list of the offset, the columns and the filters. */
    private static class PrunedStart extends Offset {
        private final Offset start;
        private final String text;

        PrunedStart(Offset start, String text) {
            this.start = start;
            this.text = text;
        }

        public String json() {
            return text;
        }

        /** Executors do not have this class; they get plans with the offset, and do not use it. */
        protected Object writeReplace() {
            return start;
        }
    }
}
