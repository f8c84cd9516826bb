package penstock;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

import org.apache.spark.SparkContext;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.execution.PlanLater;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2;
import org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite;

/**
 * Plans micro-batches as writes of batches, so that executors can run the writers of Spark's own file sources, which
 * streams have none of; and gives settings to the tasks of other micro-batches. Stays on the driver: executors do not
 * have these classes.
 */
public class MicroBatchFiles extends SparkStrategy {
    /**
     * Return the write of a micro-batch that a session plans as a write of files.
     *
     * @param session of one streaming query
     * @param write also a Function that returns a DataWriterFactory, or null to write as to any stream
     * @param places of the columns of the files among those of the query, with commas between
     */
    public StreamingWrite planned(SparkSession session, StreamingWrite write, String places) {
        List strategies = new ArrayList();
        scala.collection.Iterator known = session.experimental().extraStrategies().iterator();
        while (known.hasNext()) {
            strategies.add(known.next());
        }
        if (!strategies.contains(this)) {
            strategies.add(this);
            session.experimental().extraStrategies_$eq(PythonUtils.toSeq(strategies));
        }
        return new Planned(write, places, new HashMap());
    }

    /**
     * Return the write of a micro-batch whose tasks have some settings of their own: they take them from the properties
     * of the thread that submits the job, and Spark sets these to the settings of the session only before.
     */
    public StreamingWrite withSettings(StreamingWrite write, Map settings) {
        return new Planned(write, "", settings);
    }

    public scala.collection.immutable.Seq apply(LogicalPlan plan) {
        List made = new ArrayList();
        if (plan instanceof WriteToDataSourceV2 && ((WriteToDataSourceV2) plan).batchWrite() instanceof MicroBatchWrite) {
            WriteToDataSourceV2 write = (WriteToDataSourceV2) plan;
            MicroBatchWrite batch = (MicroBatchWrite) write.batchWrite();
            if (batch.writeSupport() instanceof Planned && ((Planned) batch.writeSupport()).writesFiles()) {
                Planned planned = (Planned) batch.writeSupport();
                LogicalPlan rows = new Project(planned.chosen(write.query()), write.query());
                made.add(new PlanLater(
                    new WriteToDataSourceV2(write.relation(), new Files(batch, planned), rows, write.customMetrics())));
            }
        }
        return PythonUtils.toSeq(made);
    }

    private static class Planned implements StreamingWrite {
        private final StreamingWrite write;
        private final String places;
        private final Map settings;
        private final Map before = new HashMap();

        Planned(StreamingWrite write, String places, Map settings) {
            this.write = write;
            this.places = places;
            this.settings = settings;
        }

        boolean writesFiles() {
            return !places.isEmpty();
        }

        private void setProperties(Map properties) {
            SparkContext context = SparkContext.getOrCreate();
            for (Iterator keys = properties.keySet().iterator(); keys.hasNext(); ) {
                String key = (String) keys.next();
                String value = (String) properties.get(key);
                before.put(key, context.getLocalProperty(key));
                context.setLocalProperty(key, value);
            }
        }

        private void resetProperties() {
            setProperties(new HashMap(before));
            before.clear();
        }

        scala.collection.immutable.Seq chosen(LogicalPlan rows) {
            List columns = new ArrayList();
            String[] parts = places.split(",");
            for (int i = 0; i < parts.length; i++) {
                columns.add(rows.output().apply(Integer.parseInt(parts[i])));
            }
            return PythonUtils.toSeq(columns);
        }

        DataWriterFactory files(PhysicalWriteInfo info) {
            return (DataWriterFactory) ((Function) write).apply(info);
        }

        public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
            StreamingDataWriterFactory made = write.createStreamingWriterFactory(info);
            setProperties(settings);
            return made;
        }

        public boolean useCommitCoordinator() {
            return write.useCommitCoordinator();
        }

        public void commit(long batchId, WriterCommitMessage[] messages) {
            resetProperties();
            write.commit(batchId, messages);
        }

        public void abort(long batchId, WriterCommitMessage[] messages) {
            resetProperties();
            write.abort(batchId, messages);
        }

        public String toString() {
            return write.toString();
        }
    }

    private static class Files implements BatchWrite {
        private final MicroBatchWrite batch;
        private final Planned planned;

        Files(MicroBatchWrite batch, Planned planned) {
            this.batch = batch;
            this.planned = planned;
        }

        public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
            DataWriterFactory made = planned.files(info);
            return made == null ? batch.createBatchWriterFactory(info) : made;
        }

        public boolean useCommitCoordinator() {
            return batch.useCommitCoordinator();
        }

        public void commit(WriterCommitMessage[] messages) {
            batch.commit(messages);
        }

        public void abort(WriterCommitMessage[] messages) {
            batch.abort(messages);
        }

        public String toString() {
            return batch.toString();
        }
    }
}
