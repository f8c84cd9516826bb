import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Random;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypes;
import org.apache.paimon.types.RowType;
import org.apache.paimon.utils.InternalRowPartitionComputer;
import org.apache.paimon.utils.PartitionPathUtils;

/**
 * Prints the directory that Paimon gives to partition values, one JSON object a line, with both settings of
 * partition.legacy-name. names.jsonl beside this file was made with org.apache.paimon:paimon-bundle:1.4.2 on JDK 17, in UTC:
 *
 * <pre>javac -cp BUNDLE PartitionNames.java; TZ=UTC java -cp BUNDLE:. PartitionNames > names.jsonl</pre>
 *
 * JDK 19 and later print some FLOAT and DOUBLE values with fewer digits.
 */
public class PartitionNames {

    static String quote(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            quoted.append(c >= ' ' && c < 127 && c != '"' && c != '\\' ? "" + c : String.format("\\u%04x", (int) c));
        }
        return quoted.append('"').toString();
    }

    static void print(DataType type, Object value, String shown) {
        RowType row = RowType.of(new DataType[] {type}, new String[] {"p"});
        String[] names = new String[2];
        for (int i = 0; i < 2; i++) {
            InternalRowPartitionComputer computer =
                    new InternalRowPartitionComputer("__NONE__", row, new String[] {"p"}, i == 0);
            String path = PartitionPathUtils.generatePartitionPath(computer.generatePartValues(GenericRow.of(value)));
            names[i] = path.substring(0, path.length() - 1);
        }
        System.out.printf(
                "{\"type\": %s, \"value\": %s, \"legacy\": %s, \"cast\": %s}%n",
                quote(type.asSQLString()), shown, quote(names[0]), quote(names[1]));
    }

    static void timestamp(int precision, boolean zoned, long millis, int nanos) {
        DataType type = zoned ? DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(precision) : DataTypes.TIMESTAMP(precision);
        BigInteger all = BigInteger.valueOf(millis).multiply(BigInteger.valueOf(1000000)).add(BigInteger.valueOf(nanos));
        print(type, Timestamp.fromEpochMillis(millis, nanos), all.toString());
    }

    static void decimal(int precision, int scale, String text) {
        print(DataTypes.DECIMAL(precision, scale), Decimal.fromBigDecimal(new BigDecimal(text), precision, scale), quote(text));
    }

    public static void main(String[] args) {
        for (float f : new float[] {
            1.1f, 1e10f, 0f, -0f, 1e-3f, 9.999e-4f, 1e7f, 9999999f, Float.MIN_VALUE, Float.MAX_VALUE, 3.4e38f, Float.NaN,
            Float.POSITIVE_INFINITY, -1.5f, 16777216f, 2e10f, 0.3f, Float.MIN_NORMAL, 33554432f
        }) {
            print(DataTypes.FLOAT(), f, quote("" + f));
        }
        for (double d : new double[] {
            1.1, 1e20, 100, 0.1, 1e10, -0.0, 1e-3, 9.999e-4, 1e7, 9999999, Double.MIN_VALUE, Double.MAX_VALUE, 2e-3,
            Double.NaN, Double.NEGATIVE_INFINITY, 123456789.125, 1e23, 2e23,
            Double.MIN_NORMAL, 1.2345678901234567e-5
        }) {
            print(DataTypes.DOUBLE(), d, quote("" + d));
        }
        Random random = new Random(1);
        for (int i = 0; i < 100; i++) {
            float[] floats = {
                Float.intBitsToFloat(random.nextInt()), random.nextInt(Integer.MAX_VALUE), random.nextInt(1000000) / 100f
            };
            for (float f : floats) {
                print(DataTypes.FLOAT(), f, quote("" + f));
            }
            double[] doubles = {
                Double.longBitsToDouble(random.nextLong()),
                Math.floor(random.nextDouble() * 1e18),
                random.nextInt(100000) * Math.pow(10, random.nextInt(40) - 20),
                Math.scalb(1.0, random.nextInt(2000) - 1000),
                Math.scalb(1.0 + random.nextInt(1 << 20), 60 + random.nextInt(30)),
            };
            for (double d : doubles) {
                print(DataTypes.DOUBLE(), d, quote("" + d));
            }
        }
        for (String text : new String[] {"1.20", "-0.05", "0", "100", "-12345678.90"}) {
            decimal(10, 2, text);
        }
        decimal(38, 10, "1234567890123456789012345678.0000000001");
        decimal(20, 10, "0.0000000001");
        decimal(10, 0, "7");
        for (int day : new int[] {19723, 0, -1, -719162, -719528, -719529, 2932896, 2932897, -1000000, 100000000}) {
            print(DataTypes.DATE(), day, "" + day);
        }
        for (int precision : new int[] {0, 1, 2, 3, 6, 9}) {
            for (int millis : new int[] {3600123, 3600100, 3600120, 3600000, 86399999, 0, 1, 10}) {
                print(DataTypes.TIME(precision), millis, "" + millis);
            }
        }
        for (boolean zoned : new boolean[] {false, true}) {
            for (int precision : new int[] {0, 1, 3, 6, 9}) {
                timestamp(precision, zoned, 1704067200000L, 0);
                timestamp(precision, zoned, 1704067201000L, 0);
                timestamp(precision, zoned, 1704067260000L, 0);
                if (precision >= 1) {
                    timestamp(precision, zoned, 1704067200100L, 0);
                }
                if (precision >= 3) {
                    for (long millis : new long[] {
                        1704067200123L, -1L, -62135596800001L, 253402300800000L, -62167305600000L
                    }) {
                        timestamp(precision, zoned, millis, 0);
                    }
                }
                if (precision >= 6) {
                    timestamp(precision, zoned, 1704067200123L, 456000);
                    timestamp(precision, zoned, 1704067200000L, 1000);
                    timestamp(precision, zoned, -1L, 999000);
                }
                if (precision == 9) {
                    timestamp(precision, zoned, 1704067200123L, 456789);
                    timestamp(precision, zoned, 1704067200000L, 1);
                }
            }
        }
        for (String text : new String[] {
            "a", "", " ", "\u00a0", "\u2003", "\u3000", "\u2007", "\u202f", "\u0085", "\u001c", "\u200b", "\t\n", "\u2028",
            " x ", "\u007f\u0080", "%", "a/b c=d:e%f?", "{}[]^\\\"'#*", "!$&`;()<>@|~+,", "\ud83d\ude00", "\u0000"
        }) {
            print(DataTypes.STRING(), BinaryString.fromString(text), quote(text));
        }
        print(DataTypes.CHAR(5), BinaryString.fromString("ab"), quote("ab"));
        print(DataTypes.CHAR(5), BinaryString.fromString("ab   "), quote("ab   "));
        print(DataTypes.BOOLEAN(), true, "true");
        print(DataTypes.BOOLEAN(), false, "false");
        print(DataTypes.TINYINT(), (byte) -5, "-5");
        print(DataTypes.SMALLINT(), (short) 300, "300");
        print(DataTypes.INT(), Integer.MIN_VALUE, "" + Integer.MIN_VALUE);
        print(DataTypes.BIGINT(), Long.MIN_VALUE, "" + Long.MIN_VALUE);
        print(DataTypes.INT(), null, "null");
    }
}
