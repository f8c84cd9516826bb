package penstock;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.zip.CRC32;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.MutableProjection;
import org.apache.spark.sql.catalyst.expressions.MutableProjection$;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.RowToColumnConverter;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.v2.FilePartitionReaderFactory;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.SerializableConfiguration;
import org.roaringbitmap.PeekableIntIterator;
import org.roaringbitmap.RoaringBitmap;

/**
 * Readers of files of several schemas, without the rows that deletion vectors delete, and with columns that are made of
 * others: one of Spark's own readers for each kind of file, and Python workers for the rest. Executors load these classes
 * from a jar that the driver makes.
 */
public class FileReaders implements PartitionReaderFactory {
    /** Key of a file's tag: the number of its reader and, if it has a deletion vector, where that is. */
    private static final String TAG = "penstock";
    private static final int STRUCT = -1;
    private final FilePartitionReaderFactory[] readers;
    private final FilePartitionReaderFactory[] numbering;
    private final int place;
    private final int[][] columns;
    private final int[][] numberedColumns;
    private final Expression[][] conversions;
    private final PartitionReaderFactory python;

    public FileReaders() {
        this(new FilePartitionReaderFactory[0], new FilePartitionReaderFactory[0], 0, null, null, null, null);
    }

    private FileReaders(
            FilePartitionReaderFactory[] readers, FilePartitionReaderFactory[] numbering, int place, int[][] columns,
            int[][] numberedColumns, Expression[][] conversions, PartitionReaderFactory python) {
        this.readers = readers;
        this.numbering = numbering;
        this.place = place;
        this.columns = columns;
        this.numberedColumns = numberedColumns;
        this.conversions = conversions;
        this.python = python;
    }

    /**
     * Return the factory of readers.
     *
     * @param readers return the same columns and all rows of a file, in order
     * @param numbering of the files with deletion vectors, at the same places, those that may leave rows out, and return
     *     the number of a row in its file, too
     * @param place of the column with this number
     * @param columns of the rows, each made of columns of the readers: the place of one; the places of the parts of a
     *     struct, with "+" between and one behind; or, with "?" between, that of a value, and those of one or two whose sum
     *     replaces NULL. Empty for the columns of the readers as they are
     * @param numberedColumns the same for the readers that number rows
     * @param conversions for each reader none, or for each of its first columns null or an expression over its rows of which
     *     the values are made
     * @param python reads partitions that are not of files; null if there are none
     */
    public FileReaders of(
            FilePartitionReaderFactory[] readers, FilePartitionReaderFactory[] numbering, int place, String columns,
            String numberedColumns, Expression[][] conversions, PartitionReaderFactory python) {
        return new FileReaders(
            readers, numbering, place, places(columns), places(numberedColumns), conversions, python);
    }

    private static int[][] places(String text) {
        if (text.isEmpty()) {
            return null;
        }
        String[] columns = text.split(",");
        int[][] made = new int[columns.length][];
        for (int i = 0; i < columns.length; i++) {
            boolean isStruct = columns[i].endsWith("+");
            String[] parts = columns[i].equals("+") ? new String[0] : columns[i].split("[+?]");
            made[i] = new int[isStruct ? parts.length + 1 : parts.length];
            for (int part = 0; part < parts.length; part++) {
                made[i][part] = Integer.parseInt(parts[part]);
            }
            if (isStruct) {
                made[i][parts.length] = STRUCT;
            }
        }
        return made;
    }

    private static boolean isStruct(int[] column) {
        return column[column.length - 1] == STRUCT;
    }

    /** Return 1 after a task has loaded these classes. */
    public long probe(SparkContext context) {
        return new JavaSparkContext(context).parallelize(Collections.singletonList(this), 1).count();
    }

    /** Return the same for all partitions, as Spark demands; Python workers return rows. */
    public boolean supportColumnarReads(InputPartition partition) {
        return python == null && supportColumnarReads(readers, partition) && supportColumnarReads(numbering, partition);
    }

    private static boolean supportColumnarReads(FilePartitionReaderFactory[] each, InputPartition partition) {
        for (int i = 0; i < each.length; i++) {
            if (each[i] != null && !each[i].supportColumnarReads(partition)) {
                return false;
            }
        }
        return true;
    }

    public PartitionReader createReader(InputPartition partition) throws IOException {
        if (!(partition instanceof FilePartition)) {
            return python.createReader(partition);
        }
        return new Files(this, ((FilePartition) partition).files(), false);
    }

    public PartitionReader createColumnarReader(InputPartition partition) {
        return new Files(this, ((FilePartition) partition).files(), true);
    }

    /** Reads the files of a partition, one after the other. */
    private static class Files implements PartitionReader {
        private final FileReaders all;
        private final PartitionedFile[] files;
        private final boolean isColumnar;
        private int opened = 0;
        private PartitionReader current;
        private Vector deleted;
        private boolean hasNumbers;
        private int[][] columns;
        private Expression[] conversions;
        private MutableProjection projection;
        private RowToColumnConverter converter;
        private StructField[] fields;
        private long passed;
        private Object found;

        Files(FileReaders all, PartitionedFile[] files, boolean isColumnar) {
            this.all = all;
            this.files = files;
            this.isColumnar = isColumnar;
        }

        public boolean next() throws IOException {
            while (true) {
                if (current == null) {
                    if (opened == files.length) {
                        return false;
                    }
                    open(files[opened++]);
                }
                if (!current.next()) {
                    close();
                } else if (take(current.get())) {
                    return true;
                }
            }
        }

        private void open(PartitionedFile file) throws IOException {
            String[] tag = ((String) file.otherConstantMetadataColumnValues().apply(TAG)).split("\t");
            int place = Integer.parseInt(tag[0]);
            boolean isWhole = file.start() == 0 && file.length() == file.fileSize();
            hasNumbers = tag.length > 1 && (all.readers[place] == null || !isWhole);
            FilePartitionReaderFactory reader = hasNumbers ? all.numbering[place] : all.readers[place];
            deleted = tag.length == 1 ? null : Vector.load(reader, tag);
            passed = 0;
            columns = hasNumbers ? all.numberedColumns : all.columns;
            conversions = all.conversions[place];
            projection = null;
            fields = columns == null && conversions.length == 0 ? null : fieldsOf(reader);
            FilePartition alone = new FilePartition(0, new PartitionedFile[] {file});
            current = isColumnar ? reader.createColumnarReader(alone) : reader.createReader(alone);
        }

        /** Return whether rows are left. */
        private boolean take(Object read) {
            found = read;
            if (!isColumnar) {
                InternalRow row = (InternalRow) read;
                if (deleted != null && deleted.has(hasNumbers ? row.getLong(all.place) : passed++)) {
                    return false;
                }
                row = conversions.length == 0 ? row : converted(row);
                found = columns == null ? row : made(row);
                return true;
            }
            ColumnarBatch batch = conversions.length == 0 ? (ColumnarBatch) read : converted((ColumnarBatch) read);
            found = batch;
            int rows = batch.numRows();
            int[] kept = new int[rows];
            int count = rows;
            if (deleted != null && hasNumbers) {
                count = deleted.keep(kept, batch.column(all.place));
            } else if (deleted != null) {
                count = deleted.keep(kept, passed);
                passed += rows;
            }
            if (columns != null || count < rows) {
                ColumnVector[] left = new ColumnVector[columns == null ? batch.numCols() : columns.length];
                for (int i = 0; i < left.length; i++) {
                    ColumnVector column = columns == null ? batch.column(i) : made(batch, columns[i]);
                    left[i] = count == rows ? column : new Kept(column, kept);
                }
                found = new ColumnarBatch(left, count);
            }
            return count > 0;
        }

        private InternalRow converted(InternalRow row) {
            Object[] values = new Object[fields.length];
            for (int i = 0; i < values.length; i++) {
                boolean isSame = i >= conversions.length || conversions[i] == null;
                values[i] = isSame ? value(row, i) : conversions[i].eval(row);
            }
            return new GenericInternalRow(values);
        }

        /** Convert all columns in one pass over the rows, by code that Spark compiles. */
        private ColumnarBatch converted(ColumnarBatch batch) {
            List expressions = new ArrayList();
            StructType type = new StructType();
            for (int i = 0; i < conversions.length; i++) {
                if (conversions[i] != null) {
                    expressions.add(conversions[i]);
                    type = type.add("value", conversions[i].dataType(), true);
                }
            }
            if (projection == null) {
                projection = MutableProjection$.MODULE$.create(PythonUtils.toSeq(expressions));
                converter = new RowToColumnConverter(type);
            }
            WritableColumnVector[] made = OnHeapColumnVector.allocateColumns(batch.numRows(), type);
            for (Iterator rows = batch.rowIterator(); rows.hasNext(); ) {
                converter.convert((InternalRow) projection.apply(rows.next()), made);
            }
            ColumnVector[] columns = new ColumnVector[batch.numCols()];
            int count = 0;
            for (int i = 0; i < columns.length; i++) {
                boolean isSame = i >= conversions.length || conversions[i] == null;
                columns[i] = isSame ? batch.column(i) : made[count++];
            }
            return new ColumnarBatch(columns, batch.numRows());
        }

        private InternalRow made(InternalRow row) {
            Object[] values = new Object[columns.length];
            for (int i = 0; i < values.length; i++) {
                int[] column = columns[i];
                values[i] = isStruct(column) ? null : value(row, column[0]);
                if (isStruct(column)) {
                    Object[] parts = new Object[column.length - 1];
                    for (int part = 0; part < parts.length; part++) {
                        parts[part] = value(row, column[part]);
                    }
                    values[i] = new GenericInternalRow(parts);
                } else if (column.length > 1 && values[i] == null && !row.isNullAt(column[1])) {
                    long sum = row.getLong(column[1]) + (column.length > 2 ? row.getLong(column[2]) : 0);
                    values[i] = Long.valueOf(sum);
                }
            }
            return new GenericInternalRow(values);
        }

        private Object value(InternalRow row, int place) {
            return row.isNullAt(place) ? null : row.get(place, fields[place].dataType());
        }

        private ColumnVector made(ColumnarBatch batch, int[] column) {
            if (column.length == 1 && !isStruct(column)) {
                return batch.column(column[0]);
            }
            ColumnVector[] parts = new ColumnVector[column.length - (isStruct(column) ? 1 : 0)];
            StructField[] kinds = new StructField[parts.length];
            for (int part = 0; part < parts.length; part++) {
                parts[part] = batch.column(column[part]);
                kinds[part] = fields[column[part]];
            }
            return isStruct(column) ? new Struct(new StructType(kinds), parts) : new Replaced(parts);
        }

        /** Return the columns that a reader returns. */
        private static StructField[] fieldsOf(FilePartitionReaderFactory reader) throws IOException {
            try {
                Class kind = reader.getClass();
                StructField[] read = ((StructType) kind.getMethod("readDataSchema").invoke(reader)).fields();
                StructField[] constant = ((StructType) kind.getMethod("partitionSchema").invoke(reader)).fields();
                StructField[] fields = (StructField[]) Arrays.copyOf(read, read.length + constant.length);
                System.arraycopy(constant, 0, fields, read.length, constant.length);
                return fields;
            } catch (Exception error) {
                throw new IOException(error);
            }
        }

        public Object get() {
            return found;
        }

        public void close() throws IOException {
            if (current != null) {
                current.close();
                current = null;
            }
        }
    }

    /** The deleted rows of a file, asked for in ascending order. */
    private static class Vector {
        private static final int MAGIC = 1581511376;
        private static final int MAGIC_64 = 1681511377;
        private static final int FRAME_BYTES = 8;
        private final PeekableIntIterator rows;
        private long next = -1;

        private Vector(PeekableIntIterator rows) {
            this.rows = rows;
            advance();
        }

        private void advance() {
            next = rows.hasNext() ? Integer.toUnsignedLong(rows.next()) : Long.MAX_VALUE;
        }

        boolean has(long row) {
            if (next < row) {
                rows.advanceIfNeeded((int) row);
                advance();
            }
            return next == row;
        }

        /** Fill in the places of rows that are not deleted, of a batch whose rows follow each other; return their number. */
        int keep(int[] kept, long first) {
            int count = 0;
            int row = 0;
            while (row < kept.length) {
                has(first + row);
                int end = (int) Math.min(kept.length, next - first);
                while (row < end) {
                    kept[count++] = row++;
                }
                row++;
            }
            return count;
        }

        /** Do the same for rows with these numbers. */
        int keep(int[] kept, ColumnVector numbers) {
            if (kept.length > 0 && numbers.getLong(kept.length - 1) - numbers.getLong(0) == kept.length - 1) {
                return keep(kept, numbers.getLong(0));
            }
            int count = 0;
            for (int row = 0; row < kept.length; row++) {
                if (!has(numbers.getLong(row))) {
                    kept[count++] = row;
                }
            }
            return count;
        }

        /** Load a vector; tag has, after the reader, URI of the index file, offset, length, and rows of the data file. */
        static Vector load(FilePartitionReaderFactory reader, String[] tag) throws IOException {
            // Java's length of a vector of 64 bits includes its frame, so that the file may end before the last bytes.
            byte[] data = new byte[Integer.parseInt(tag[3]) + FRAME_BYTES];
            int count = 0;
            try {
                Path path = new Path(new URI(tag[1]));
                FSDataInputStream input = path.getFileSystem(configuration(reader)).open(path);
                try {
                    input.seek(Long.parseLong(tag[2]));
                    for (int read = 0; read >= 0 && count < data.length; count += Math.max(read, 0)) {
                        read = input.read(data, count, data.length - count);
                    }
                } finally {
                    input.close();
                }
                return new Vector(decode(Arrays.copyOf(data, count), Long.parseLong(tag[4])).getIntIterator());
            } catch (FileNotFoundException error) {
                throw new FileNotFoundException(
                    tag[1] + " is missing, which has a deletion vector; restore it from a copy");
            } catch (Exception error) {
                throw new IOException(tag[1] + ": a deletion vector cannot be read: " + error.getMessage(), error);
            }
        }

        private static Configuration configuration(FilePartitionReaderFactory reader) throws Exception {
            Broadcast shared = (Broadcast) reader.getClass().getMethod("broadcastedConf").invoke(reader);
            return ((SerializableConfiguration) shared.value()).value();
        }

        /** Decode length, magic, bitmap and checksum, as in an index file. */
        private static RoaringBitmap decode(byte[] data, long fileRows) throws IOException {
            if (data.length < FRAME_BYTES + 4) {
                throw new IOException("it was cut off");
            }
            ByteBuffer buffer = ByteBuffer.wrap(data);
            int length = buffer.getInt();
            int magic = buffer.getInt();
            boolean is64 = Integer.reverseBytes(magic) == MAGIC_64;
            if ((!is64 && magic != MAGIC) || length < FRAME_BYTES) {
                throw new IOException("there is none at this offset");
            }
            if (length > data.length - FRAME_BYTES) {
                throw new IOException("it was cut off");
            }
            CRC32 sum = new CRC32();
            sum.update(data, 4, length);
            if ((int) sum.getValue() != buffer.getInt(4 + length)) {
                throw new IOException("its checksum is wrong, the file is damaged");
            }
            buffer.order(ByteOrder.LITTLE_ENDIAN);
            RoaringBitmap rows = new RoaringBitmap();
            // One of 64 bits has a bitmap for each upper half of the numbers, which is 0 for the rows of a file.
            long bitmaps = is64 ? buffer.getLong() : 1;
            if (bitmaps > 1 || (is64 && bitmaps == 1 && buffer.getInt() != 0)) {
                throw new IOException("it deletes rows that its file does not have");
            }
            if (bitmaps == 1) {
                rows.deserialize(buffer);
            }
            if (!rows.isEmpty() && Integer.toUnsignedLong(rows.last()) >= fileRows) {
                throw new IOException("it deletes rows that its file does not have");
            }
            return rows;
        }
    }

    /** Some of the rows of a column. */
    private static class Kept extends ColumnVector {
        private final ColumnVector all;
        private final int[] rows;
        private final boolean hasNull;
        private ColumnVector[] children = new ColumnVector[0];

        Kept(ColumnVector all, int[] rows) {
            this(all.dataType(), all, rows, all.hasNull());
        }

        Kept(DataType type, ColumnVector all, int[] rows, boolean hasNull) {
            super(type);
            this.all = all;
            this.rows = rows;
            this.hasNull = hasNull;
        }

        /** Do nothing: the reader of the file uses its columns again. */
        public void close() {
        }

        public boolean hasNull() {
            return hasNull;
        }

        public int numNulls() {
            return all.numNulls();
        }

        public boolean isNullAt(int row) {
            return hasNull && all.isNullAt(rows[row]);
        }

        public boolean getBoolean(int row) {
            return all.getBoolean(rows[row]);
        }

        public byte getByte(int row) {
            return all.getByte(rows[row]);
        }

        public short getShort(int row) {
            return all.getShort(rows[row]);
        }

        public int getInt(int row) {
            return all.getInt(rows[row]);
        }

        public long getLong(int row) {
            return all.getLong(rows[row]);
        }

        public float getFloat(int row) {
            return all.getFloat(rows[row]);
        }

        public double getDouble(int row) {
            return all.getDouble(rows[row]);
        }

        public ColumnarArray getArray(int row) {
            return all.getArray(rows[row]);
        }

        public ColumnarMap getMap(int row) {
            return all.getMap(rows[row]);
        }

        public Decimal getDecimal(int row, int precision, int scale) {
            return all.getDecimal(rows[row], precision, scale);
        }

        public UTF8String getUTF8String(int row) {
            return all.getUTF8String(rows[row]);
        }

        public byte[] getBinary(int row) {
            return all.getBinary(rows[row]);
        }

        /** Return a field of a ROW, asked for once for each value of it. */
        public ColumnVector getChild(int place) {
            if (place >= children.length) {
                children = (ColumnVector[]) Arrays.copyOf(children, place + 1);
            }
            if (children[place] == null) {
                children[place] = new Kept(all.getChild(place), rows);
            }
            return children[place];
        }
    }

    /** A column of structs, none of which is NULL. */
    private static class Struct extends Kept {
        private final ColumnVector[] parts;

        Struct(StructType type, ColumnVector[] parts) {
            super(type, null, null, false);
            this.parts = parts;
        }

        public int numNulls() {
            return 0;
        }

        public ColumnVector getChild(int place) {
            return parts[place];
        }
    }

    /** A column of numbers, with the sum of others in place of NULL. */
    private static class Replaced extends Kept {
        private final ColumnVector[] parts;

        Replaced(ColumnVector[] parts) {
            super(DataTypes.LongType, null, null, true);
            this.parts = parts;
        }

        public int numNulls() {
            return Math.min(parts[0].numNulls(), parts[1].numNulls());
        }

        public boolean isNullAt(int row) {
            return parts[0].isNullAt(row) && parts[1].isNullAt(row);
        }

        public long getLong(int row) {
            if (!parts[0].isNullAt(row)) {
                return parts[0].getLong(row);
            }
            return parts[1].getLong(row) + (parts.length > 2 ? parts[2].getLong(row) : 0);
        }
    }
}
