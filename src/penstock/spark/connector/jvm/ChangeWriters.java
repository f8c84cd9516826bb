package penstock;

import java.io.IOException;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.DeltaWriter;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/**
 * Writers of the rows that a statement deletes, updates or inserts, into files of another writer: whether the row is
 * deleted, its position, which is NULL for a new row, and its columns, which are NULL for a deleted one. Executors load
 * these classes from a jar that the driver makes.
 */
public class ChangeWriters implements DeltaWriterFactory {
    private final DataWriterFactory files;
    private final int positions;
    private final int columns;

    public ChangeWriters() {
        this(null, 0, 0);
    }

    private ChangeWriters(DataWriterFactory files, int positions, int columns) {
        this.files = files;
        this.positions = positions;
        this.columns = columns;
    }

    /**
     * Return the factory of writers.
     *
     * @param files makes the writers of the files
     * @param positions the number of columns of a position
     * @param columns the number of the others
     */
    public ChangeWriters of(DataWriterFactory files, int positions, int columns) {
        return new ChangeWriters(files, positions, columns);
    }

    public DeltaWriter createWriter(int partition, long task) {
        return new Writer(files.createWriter(partition, task), positions, columns);
    }

    private static class Writer implements DeltaWriter {
        private final DataWriter file;
        private final InternalRow deleted = new GenericInternalRow(new Object[] {Boolean.TRUE});
        private final InternalRow there = new GenericInternalRow(new Object[] {Boolean.FALSE});
        private final InternalRow noPosition;
        private final InternalRow noColumns;
        private final JoinedRow first = new JoinedRow();
        private final JoinedRow whole = new JoinedRow();

        Writer(DataWriter file, int positions, int columns) {
            this.file = file;
            noPosition = new GenericInternalRow(new Object[positions]);
            noColumns = new GenericInternalRow(new Object[columns]);
        }

        private void put(InternalRow kind, Object position, Object row) throws IOException {
            file.write(whole.apply(first.apply(kind, (InternalRow) position), (InternalRow) row));
        }

        public void delete(Object metadata, Object position) throws IOException {
            put(deleted, position, noColumns);
        }

        public void update(Object metadata, Object position, Object row) throws IOException {
            put(there, position, row);
        }

        public void insert(Object row) throws IOException {
            put(there, noPosition, row);
        }

        public void reinsert(Object metadata, Object row) throws IOException {
            throw new IOException("an updated row came without its position");
        }

        public WriterCommitMessage commit() throws IOException {
            return file.commit();
        }

        public void abort() throws IOException {
            file.abort();
        }

        public void close() throws IOException {
            file.close();
        }

        public CustomTaskMetric[] currentMetricsValues() {
            return file.currentMetricsValues();
        }
    }
}
