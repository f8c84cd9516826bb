package penstock;

import java.lang.invoke.MethodHandles;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;

import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.codehaus.janino.SimpleCompiler;

/**
 * Makes a class that Spark loads by its name as a catalog, in each session. Its objects pass all calls on to the object
 * that Python makes for their name and options.
 */
public class CatalogClass {
    private static final String NAME = "penstock.Catalog";

    /**
     * Define the class, unless this JVM has it, and return its name.
     *
     * @param interfaces names of the interfaces of the objects that "maker" makes
     * @param maker called with the name of a catalog and the map of its options, when the first method is called
     */
    public String define(List interfaces, BiFunction maker) throws Exception {
        ClassLoader loader = CatalogPlugin.class.getClassLoader();
        Class kind;
        try {
            kind = Class.forName(NAME, true, loader);
        } catch (ClassNotFoundException absent) {
            kind = defined(loader, interfaces);
        }
        kind.getField("maker").set(null, maker);
        return kind.getName();
    }

    private static Class defined(ClassLoader loader, List interfaces) throws Exception {
        Method define;
        try {
            define = ClassLoader.class.getDeclaredMethod(
                "defineClass", new Class[] {String.class, byte[].class, int.class, int.class});
            // Spark starts each JVM with --add-opens java.base/java.lang=ALL-UNNAMED.
            define.setAccessible(true);
        } catch (RuntimeException closed) {
            return definedBeside(CatalogPlugin.class, "PenstockCatalog", interfaces);
        }
        byte[] code = compiled(loader, NAME, interfaces);
        return (Class) define.invoke(loader, new Object[] {NAME, code, Integer.valueOf(0), Integer.valueOf(code.length)});
    }

    /** Define the class in the package of another one, which needs nothing but that class, and return it. */
    public static Class definedBeside(Class other, String name, List interfaces) throws Exception {
        String whole = other.getName().substring(0, other.getName().lastIndexOf('.') + 1) + name;
        try {
            return Class.forName(whole, true, other.getClassLoader());
        } catch (ClassNotFoundException absent) {
            byte[] code = compiled(other.getClassLoader(), whole, interfaces);
            return MethodHandles.privateLookupIn(other, MethodHandles.lookup()).defineClass(code);
        }
    }

    private static byte[] compiled(ClassLoader loader, String name, List interfaces) throws Exception {
        SimpleCompiler compiler = new SimpleCompiler();
        compiler.setParentClassLoader(loader);
        compiler.cook(source(name, interfaces, loader));
        return (byte[]) compiler.getBytecodes().get(name);
    }

    private static String source(String name, List interfaces, ClassLoader loader) throws Exception {
        int end = name.lastIndexOf('.');
        String simple = name.substring(end + 1);
        Map methods = new HashMap();
        StringBuilder text = new StringBuilder("package ").append(name.substring(0, end)).append(";\n");
        text.append("public class ").append(simple).append(" implements ");
        for (int i = 0; i < interfaces.size(); i++) {
            text.append(i == 0 ? "" : ", ").append(interfaces.get(i));
            addMethods(methods, Class.forName((String) interfaces.get(i), false, loader));
        }
        text.append(" {\n")
            .append("  public static volatile java.util.function.BiFunction maker;\n")
            .append("  private String name;\n  private Object options;\n  private Object made;\n")
            .append("  public String name() { return name; }\n")
            .append("  public void initialize(String name, org.apache.spark.sql.util.CaseInsensitiveStringMap options) {\n")
            .append("    this.name = name; this.options = options.asCaseSensitiveMap(); }\n")
            // Python is not called in the lock: it may come back to this object on another thread.
            .append("  private synchronized Object keep(Object found) {\n")
            .append("    if (made == null) { made = found; } return made; }\n")
            .append("  private Object made() { Object found = keep(null);\n")
            .append("    return found == null ? keep(maker.apply(name, options)) : found; }\n")
            .append("  public synchronized void reset() { made = null; }\n")
            .append("  public String toString() { Object found = keep(null);\n")
            .append("    return found == null ? \"catalog \" + name : found.toString(); }\n")
            .append("  public int hashCode() { return name.hashCode(); }\n")
            .append("  public boolean equals(Object other) { return other == this\n")
            .append("    || other instanceof ").append(simple).append(" && toString().equals(other.toString()); }\n");
        for (Iterator each = methods.values().iterator(); each.hasNext();) {
            addDelegation(text, (Method) each.next());
        }
        return text.append("}\n").toString();
    }

    /** Add the methods that a class with this interface can have; of equal ones, the one with the narrowest result. */
    private static void addMethods(Map methods, Class type) {
        Method[] all = type.getMethods();
        for (int i = 0; i < all.length; i++) {
            String key = all[i].getName() + types(all[i].getParameterTypes(), "");
            Method before = (Method) methods.get(key);
            if (!Modifier.isStatic(all[i].getModifiers()) && !key.equals("name")
                    && !all[i].getName().equals("initialize")
                    && (before == null || before.getReturnType().isAssignableFrom(all[i].getReturnType()))) {
                methods.put(key, all[i]);
            }
        }
    }

    private static void addDelegation(StringBuilder text, Method method) {
        Class[] parameters = method.getParameterTypes();
        Class[] thrown = method.getExceptionTypes();
        Class result = method.getReturnType();
        text.append("  public ").append(result.getCanonicalName()).append(' ').append(method.getName()).append('(');
        text.append(types(parameters, " p")).append(')').append(thrown.length == 0 ? "" : " throws ");
        text.append(types(thrown, "")).append(" { ").append(result == void.class ? "" : "return ").append("((");
        text.append(method.getDeclaringClass().getCanonicalName()).append(") made()).").append(method.getName()).append('(');
        for (int i = 0; i < parameters.length; i++) {
            text.append(i == 0 ? "p" : ", p").append(i);
        }
        text.append("); }\n");
    }

    private static String types(Class[] types, String name) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < types.length; i++) {
            text.append(i == 0 ? "" : ", ").append(types[i].getCanonicalName());
            text.append(name).append(name.isEmpty() ? "" : String.valueOf(i));
        }
        return text.toString();
    }

    /** Load a catalog of a session, as its first statement would, and forget what Python made for it before. */
    public boolean reload(SparkSession session, String name, String kind) throws Exception {
        CatalogPlugin found;
        scala.Option before = SparkSession.getActiveSession();
        // Spark takes the settings of catalogs from the active session.
        SparkSession.setActiveSession(session);
        try {
            found = session.sessionState().catalogManager().catalog(name);
        } finally {
            if (before.isDefined()) {
                SparkSession.setActiveSession((SparkSession) before.get());
            } else {
                SparkSession.clearActiveSession();
            }
        }
        if (!found.getClass().getName().equals(kind)) {
            return false;
        }
        found.getClass().getMethod("reset", new Class[0]).invoke(found, new Object[0]);
        return true;
    }
}
