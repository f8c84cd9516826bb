package penstock;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import java.util.regex.Pattern;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructType;

/**
 * Makes the writers of the Parquet files of a task, which closes each file before it begins the next one: columns for
 * which a file has no dictionary, though it was tried, get none in the next ten files (design/0007). Executors load these
 * classes from a jar that the driver makes.
 */
public class FileWriters extends OutputWriterFactory implements Function {
    private static final String DICTIONARY = "parquet.enable.dictionary#";
    /** Of columns whose paths in a file are their names. */
    private static final Pattern PLAIN_NAME = Pattern.compile("(?U)\\w+");
    /** Parquet's writer decides after so many rows. */
    private static final long PAGE_ROWS = 20000L;
    private static final int FILES_WITHOUT = 10;
    private final OutputWriterFactory writers;
    // Of a task, which has its own copy of this object and of the configuration.
    private int files;
    private String tried;
    private final List without = new ArrayList();

    public FileWriters() {
        this(null);
    }

    private FileWriters(OutputWriterFactory writers) {
        this.writers = writers;
    }

    /** Return a factory that has another one make the writers. */
    public Object apply(Object writers) {
        return new FileWriters((OutputWriterFactory) writers);
    }

    /** Return the same command to write Parquet files, with such a factory. */
    public LogicalPlan inCommand(LogicalPlan command) {
        Object[] parts = new Object[command.productArity()];
        for (int i = 0; i < parts.length; i++) {
            Object part = command.productElement(i);
            parts[i] = part instanceof ParquetFileFormat ? new Format() : part;
        }
        return (LogicalPlan) command.makeCopy(parts);
    }

    public String getFileExtension(TaskAttemptContext context) {
        return writers.getFileExtension(context);
    }

    public OutputWriter newInstance(String path, StructType columns, TaskAttemptContext context) {
        Configuration configuration = context.getConfiguration();
        int turn = files++ % (1 + FILES_WITHOUT);
        if (turn == 0) {
            for (Iterator each = without.iterator(); each.hasNext(); ) {
                configuration.unset((String) each.next());
            }
            without.clear();
            tried = path;
        } else if (turn == 1) {
            for (Iterator each = plainColumns(configuration).iterator(); each.hasNext(); ) {
                String key = DICTIONARY + each.next();
                if (configuration.get(key) == null) {
                    configuration.set(key, "false");
                    without.add(key);
                }
            }
        }
        return writers.newInstance(path, columns, context);
    }

    /** Return the columns of the last file that tried all which have values and no dictionary. */
    private Set plainColumns(Configuration configuration) {
        Set plain = new HashSet();
        Set others = new HashSet();
        try {
            ParquetFileReader file = ParquetFileReader.open(HadoopInputFile.fromPath(new Path(tried), configuration));
            try {
                if (file.getRecordCount() >= PAGE_ROWS) {
                    for (Iterator groups = file.getRowGroups().iterator(); groups.hasNext(); ) {
                        sort(((BlockMetaData) groups.next()).getColumns(), plain, others);
                    }
                }
            } finally {
                file.close();
            }
        } catch (Exception error) {
            // Of a file that is still open, for example. It matters to the commit, not to this choice.
            plain.clear();
        }
        plain.removeAll(others);
        return plain;
    }

    private static void sort(List chunks, Set plain, Set others) {
        for (Iterator each = chunks.iterator(); each.hasNext(); ) {
            ColumnChunkMetaData chunk = (ColumnChunkMetaData) each.next();
            String name = chunk.getPath().toDotString();
            boolean hasValues = chunk.getStatistics().getNumNulls() < chunk.getValueCount();
            if (chunk.hasDictionaryPage()) {
                others.add(name);
            } else if (hasValues && PLAIN_NAME.matcher(name).matches()) {
                plain.add(name);
            }
        }
    }

    private static class Format extends ParquetFileFormat {
        public OutputWriterFactory prepareWrite(
                SparkSession session, Job job, scala.collection.immutable.Map options, StructType columns) {
            return new FileWriters(super.prepareWrite(session, job, options, columns));
        }
    }
}
