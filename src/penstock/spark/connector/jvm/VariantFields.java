package penstock;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;

import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.variant.VariantGet;
import org.apache.spark.sql.catalyst.planning.PhysicalOperation$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreePattern$;
import org.apache.spark.sql.connector.read.SupportsPushDownVariantExtractions;
import org.apache.spark.sql.connector.read.VariantExtraction;
import org.apache.spark.sql.execution.datasources.RequestedVariantField;
import org.apache.spark.sql.execution.datasources.VariantInRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.connector.VariantExtractionImpl;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.VariantType;
import scala.collection.immutable.Map$;

/**
 * Has Spark's Parquet reader return the fields of a VARIANT that a query takes, instead of the VARIANT. Spark itself asks
 * scans for that before it has pruned their columns, and then reads all columns of the table. Stays on the driver.
 */
public class VariantFields extends Rule {
    /** How proxies of scans begin their texts, other than those of changes of rows, which need whole values. */
    private static final String SCAN = "TableScan[";
    private static final String ENABLED = "spark.sql.variant.pushVariantIntoScan";

    public LogicalPlan apply(LogicalPlan plan) {
        // Spark has copied a side of a join into its query for partitions, and drops it if the side is another plan then.
        boolean prunes = plan.containsPattern(TreePattern$.MODULE$.DYNAMIC_PRUNING_SUBQUERY());
        return !prunes && SQLConf.get().getConfString(ENABLED).equals("true") ? rewritten(plan) : plan;
    }

    /** Some compilers call this one: the parameter of the generic method is a node. */
    public TreeNode apply(TreeNode plan) {
        return apply((LogicalPlan) plan);
    }

    private static LogicalPlan rewritten(LogicalPlan plan) {
        Aggregate aggregate = plan instanceof Aggregate ? (Aggregate) plan : null;
        scala.Option matched = PhysicalOperation$.MODULE$.unapply(aggregate == null ? plan : aggregate.child());
        scala.Tuple3 parts = matched.isDefined() ? (scala.Tuple3) matched.get() : null;
        if (parts != null && isOurs(parts._3()) && (aggregate == null || areColumns((scala.collection.Iterable) parts._1()))) {
            scala.collection.Iterable filters = (scala.collection.Iterable) parts._2();
            DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) parts._3();
            List values = new ArrayList();
            if (aggregate == null) {
                addLazily(values, (scala.collection.Iterable) parts._1());
                LogicalPlan made = pushed(values, filters, relation);
                return made == null ? plan : new Project(PythonUtils.toSeq(values), made);
            }
            addLazily(values, aggregate.groupingExpressions());
            int keys = values.size();
            addLazily(values, aggregate.aggregateExpressions());
            LogicalPlan made = pushed(values, filters, relation);
            return made == null ? plan : (LogicalPlan) copied(
                aggregate, new Object[] {aggregate.groupingExpressions(), PythonUtils.toSeq(values.subList(0, keys)),
                    aggregate.aggregateExpressions(), PythonUtils.toSeq(values.subList(keys, values.size())),
                    aggregate.child(), made});
        }
        List children = new ArrayList();
        boolean isChanged = false;
        scala.collection.Iterator old = plan.children().iterator();
        while (old.hasNext()) {
            LogicalPlan child = (LogicalPlan) old.next();
            LogicalPlan made = rewritten(child);
            isChanged = isChanged || made != child;
            children.add(made);
        }
        return isChanged ? (LogicalPlan) plan.withNewChildren(PythonUtils.toSeq(children)) : plan;
    }

    private static boolean areColumns(scala.collection.Iterable expressions) {
        scala.collection.Iterator each = expressions.iterator();
        while (each.hasNext()) {
            if (!(each.next() instanceof AttributeReference)) {
                return false;
            }
        }
        return true;
    }

    /** Return a copy of a plan with some of its parts replaced, which come in pairs. */
    private static TreeNode copied(LogicalPlan plan, Object[] pairs) {
        Object[] arguments = new Object[plan.productArity()];
        for (int i = 0; i < arguments.length; i++) {
            arguments[i] = plan.productElement(i);
            for (int pair = 0; pair < pairs.length; pair += 2) {
                if (arguments[i] == pairs[pair]) {
                    arguments[i] = pairs[pair + 1];
                    break;
                }
            }
        }
        return plan.makeCopy(arguments);
    }

    private static boolean isOurs(Object leaf) {
        if (!(leaf instanceof DataSourceV2ScanRelation)) {
            return false;
        }
        Object scan = ((DataSourceV2ScanRelation) leaf).scan();
        return Proxy.isProxyClass(scan.getClass()) && scan instanceof SupportsPushDownVariantExtractions
            && scan.toString().startsWith(SCAN);
    }

    /**
     * Return the plan of a scan of fields, filtered; null where the whole VARIANT is needed.
     *
     * @param values expressions above it, which are replaced by those that take the fields
     */
    private static LogicalPlan pushed(
            List values, scala.collection.Iterable filters, DataSourceV2ScanRelation relation) {
        VariantInRelation variants = new VariantInRelation();
        scala.collection.Iterator all = relation.output().iterator();
        boolean hasVariants = false;
        while (all.hasNext()) {
            AttributeReference column = (AttributeReference) all.next();
            if (column.dataType() instanceof VariantType) {
                hasVariants = true;
                variants.addVariantFields(column.exprId(), column.dataType(), null, PythonUtils.toSeq(new ArrayList()));
            }
        }
        if (!hasVariants) {
            return null;
        }
        List conditions = new ArrayList();
        addLazily(conditions, filters);
        for (int i = 0; i < values.size() + conditions.size(); i++) {
            int place = i - values.size();
            variants.collectRequestedFields((Expression) (place < 0 ? values.get(i) : conditions.get(place)));
        }
        List columns = new ArrayList();
        List extractions = new ArrayList();
        scala.collection.immutable.Map replaced = Map$.MODULE$.empty();
        all = relation.output().iterator();
        while (all.hasNext()) {
            AttributeReference column = (AttributeReference) all.next();
            if (column.dataType() instanceof VariantType) {
                if (!areSafe(variants, column)) {
                    return null;
                }
                DataType fields = variants.rewriteType(column.exprId(), column.dataType(), PythonUtils.toSeq(new ArrayList()));
                extractions.add(new VariantExtractionImpl(new String[] {column.name()}, Metadata.empty(), fields));
                AttributeReference made = (AttributeReference) column.withDataType(fields).newInstance();
                replaced = (scala.collection.immutable.Map) replaced.updated(column.exprId(), made);
                column = made;
            }
            columns.add(column);
        }
        SupportsPushDownVariantExtractions scan = (SupportsPushDownVariantExtractions) relation.scan();
        boolean[] taken = scan.pushVariantExtractions(
            (VariantExtraction[]) extractions.toArray(new VariantExtraction[0]));
        if (!taken[0]) {
            return null;
        }
        LogicalPlan made = (LogicalPlan) copied(
            relation, new Object[] {relation.output(), PythonUtils.toSeq(columns), relation.scan(), scan.build()});
        Expression condition = null;
        for (int i = 0; i < conditions.size(); i++) {
            Expression next = variants.rewriteExpr((Expression) conditions.get(i), replaced);
            condition = condition == null ? next : new And(condition, next);
        }
        for (int i = 0; i < values.size(); i++) {
            values.set(i, variants.rewriteExpr((Expression) values.get(i), replaced));
        }
        return condition == null ? made : new Filter(condition, made);
    }

    /** Return whether only fields of a VARIANT are needed, and to extract them never fails. */
    private static boolean areSafe(VariantInRelation variants, AttributeReference column) {
        scala.collection.Map paths = (scala.collection.Map) variants.mapping().apply(column.exprId());
        scala.collection.Iterator wanted = paths.values().iterator();
        while (wanted.hasNext()) {
            scala.collection.Iterator fields = ((scala.collection.Map) wanted.next()).keysIterator();
            while (fields.hasNext()) {
                // The whole value is such a field, too.
                if (((RequestedVariantField) fields.next()).path().failOnError()) {
                    return false;
                }
            }
        }
        return true;
    }

    private static void addLazily(List made, scala.collection.Iterable expressions) {
        scala.collection.Iterator each = expressions.iterator();
        while (each.hasNext()) {
            made.add(lazily((Expression) each.next()));
        }
    }

    /**
     * Return an expression that takes a field as a VARIANT and then casts it, where the cast may fail: a reader would fail
     * for rows that the query never looks at.
     */
    private static Expression lazily(Expression expression) {
        if (expression instanceof VariantGet && ((VariantGet) expression).child() instanceof AttributeReference) {
            VariantGet get = (VariantGet) expression;
            if (!get.failOnError() || !get.path().foldable() || get.path().eval(null) == null) {
                return get;
            }
            VariantGet field = new VariantGet(
                get.child(), get.path(), ((Expression) get.child()).dataType(), false, get.timeZoneId());
            return new VariantGet(field, Literal$.MODULE$.apply("$"), get.targetType(), true, get.timeZoneId());
        }
        List children = new ArrayList();
        boolean isChanged = false;
        scala.collection.Iterator old = expression.children().iterator();
        while (old.hasNext()) {
            Expression child = (Expression) old.next();
            Expression made = lazily(child);
            isChanged = isChanged || made != child;
            children.add(made);
        }
        return isChanged ? (Expression) expression.withNewChildren(PythonUtils.toSeq(children)) : expression;
    }
}
