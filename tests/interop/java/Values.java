import java.math.BigDecimal;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericArray;
import org.apache.paimon.data.GenericMap;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalArray;
import org.apache.paimon.data.InternalMap;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.data.variant.GenericVariant;
import org.apache.paimon.data.variant.Variant;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.JsonNodeFactory;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.types.ArrayType;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypes;
import org.apache.paimon.types.DecimalType;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.MultisetType;
import org.apache.paimon.types.RowType;

/** Paimon's internal values to canonical JSON and back; tests/interop/canonical.py says what canonical is. */
final class Values {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    private Values() {}

    // ---------------------------------------------------------------- to JSON

    static ObjectNode toJson(InternalRow row, RowType type) {
        ObjectNode result = JSON.objectNode();
        for (int i = 0; i < type.getFieldCount(); i++) {
            DataType fieldType = type.getTypeAt(i);
            Object value = InternalRow.createFieldGetter(fieldType, i).getFieldOrNull(row);
            result.set(type.getFieldNames().get(i), toJson(value, fieldType));
        }
        return result;
    }

    private static JsonNode toJson(Object value, DataType type) {
        if (value == null) return JSON.nullNode();
        switch (type.getTypeRoot()) {
            case BOOLEAN:
                return JSON.booleanNode((Boolean) value);
            case TINYINT:
            case SMALLINT:
            case INTEGER:
            case BIGINT:
                return JSON.numberNode(((Number) value).longValue());
            case FLOAT:
            case DOUBLE:
                return toJson(((Number) value).doubleValue());
            case DECIMAL:
                return JSON.textNode(((Decimal) value).toBigDecimal().toPlainString());
            case CHAR:
            case VARCHAR:
                return JSON.textNode(value.toString());
            case BINARY:
            case VARBINARY:
                return toJson((byte[]) value);
            case DATE:
                return JSON.textNode(format(LocalDate.ofEpochDay((Integer) value)));
            case TIME_WITHOUT_TIME_ZONE:
                int ms = (Integer) value;
                return JSON.textNode(String.format(
                        "%02d:%02d:%02d.%03d", ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000));
            case TIMESTAMP_WITHOUT_TIME_ZONE:
                return JSON.textNode(format(((Timestamp) value).toLocalDateTime()));
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return JSON.textNode(format(((Timestamp) value).toLocalDateTime()) + "Z");
            case ARRAY:
                return toJson((InternalArray) value, ((ArrayType) type).getElementType());
            case MULTISET:
            case MAP:
                return pairs((InternalMap) value, keyType(type), valueType(type));
            case ROW:
                return toJson((InternalRow) value, (RowType) type);
            case VARIANT:
                ObjectNode variant = JSON.objectNode();
                variant.set("value", toJson(((Variant) value).value()));
                variant.set("metadata", toJson(((Variant) value).metadata()));
                return variant;
            default:
                throw new IllegalArgumentException("no canonical form of " + type);
        }
    }

    private static JsonNode toJson(double value) {
        if (Double.isNaN(value)) return JSON.textNode("NaN");
        if (Double.isInfinite(value)) return JSON.textNode(value > 0 ? "Infinity" : "-Infinity");
        return JSON.numberNode(value);
    }

    private static JsonNode toJson(byte[] value) {
        return JSON.textNode("0x" + HexFormat.of().formatHex(value));
    }

    private static ArrayNode toJson(InternalArray array, DataType elementType) {
        InternalArray.ElementGetter getter = InternalArray.createElementGetter(elementType);
        ArrayNode result = JSON.arrayNode();
        for (int i = 0; i < array.size(); i++) result.add(toJson(getter.getElementOrNull(array, i), elementType));
        return result;
    }

    private static ArrayNode pairs(InternalMap map, DataType keyType, DataType valueType) {
        ArrayNode keys = toJson(map.keyArray(), keyType);
        ArrayNode values = toJson(map.valueArray(), valueType);
        ArrayNode result = JSON.arrayNode();
        for (int i = 0; i < keys.size(); i++) result.add(JSON.arrayNode().add(keys.get(i)).add(values.get(i)));
        return result;
    }

    private static String format(LocalDate date) {
        return String.format("%04d-%02d-%02d", date.getYear(), date.getMonthValue(), date.getDayOfMonth());
    }

    private static String format(LocalDateTime time) {
        return String.format(
                "%sT%02d:%02d:%02d.%09d",
                format(time.toLocalDate()), time.getHour(), time.getMinute(), time.getSecond(), time.getNano());
    }

    private static DataType keyType(DataType type) {
        return type instanceof MapType ? ((MapType) type).getKeyType() : ((MultisetType) type).getElementType();
    }

    private static DataType valueType(DataType type) {
        return type instanceof MapType ? ((MapType) type).getValueType() : DataTypes.INT();
    }

    // -------------------------------------------------------------- from JSON

    static GenericRow row(JsonNode json, RowType type) {
        GenericRow result = new GenericRow(type.getFieldCount());
        for (int i = 0; i < type.getFieldCount(); i++)
            result.setField(i, value(json.get(type.getFieldNames().get(i)), type.getTypeAt(i)));
        return result;
    }

    static Object value(JsonNode json, DataType type) {
        if (json == null || json.isNull()) return null;
        switch (type.getTypeRoot()) {
            case BOOLEAN:
                return json.booleanValue();
            case TINYINT:
                return (byte) json.intValue();
            case SMALLINT:
                return (short) json.intValue();
            case INTEGER:
                return json.intValue();
            case BIGINT:
                return json.longValue();
            case FLOAT:
                return (float) number(json);
            case DOUBLE:
                return number(json);
            case DECIMAL:
                return decimal(json.asText(), (DecimalType) type);
            case CHAR:
            case VARCHAR:
                return BinaryString.fromString(json.asText());
            case BINARY:
            case VARBINARY:
                return bytes(json);
            case DATE:
                return (int) LocalDate.parse(json.asText()).toEpochDay();
            case TIME_WITHOUT_TIME_ZONE:
                return (int) (LocalTime.parse(json.asText()).toNanoOfDay() / 1_000_000);
            case TIMESTAMP_WITHOUT_TIME_ZONE:
                return Timestamp.fromLocalDateTime(LocalDateTime.parse(json.asText()));
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return Timestamp.fromLocalDateTime(LocalDateTime.parse(json.asText().replaceFirst("Z$", "")));
            case ARRAY:
                Object[] elements = new Object[json.size()];
                for (int i = 0; i < elements.length; i++)
                    elements[i] = value(json.get(i), ((ArrayType) type).getElementType());
                return new GenericArray(elements);
            case MULTISET:
            case MAP:
                Map<Object, Object> map = new LinkedHashMap<>();
                for (JsonNode pair : json) map.put(value(pair.get(0), keyType(type)), value(pair.get(1), valueType(type)));
                return new GenericMap(map);
            case ROW:
                return row(json, (RowType) type);
            case VARIANT:
                return new GenericVariant(bytes(json.get("value")), bytes(json.get("metadata")));
            default:
                throw new IllegalArgumentException("no value of " + type);
        }
    }

    private static Decimal decimal(String text, DecimalType type) {
        Decimal result = Decimal.fromBigDecimal(new BigDecimal(text), type.getPrecision(), type.getScale());
        if (result == null) throw new IllegalArgumentException(text + " does not fit " + type);
        return result;
    }

    private static double number(JsonNode json) {
        return json.isTextual() ? Double.parseDouble(json.asText()) : json.doubleValue();
    }

    private static byte[] bytes(JsonNode json) {
        return HexFormat.of().parseHex(json.asText().substring(2));
    }
}
