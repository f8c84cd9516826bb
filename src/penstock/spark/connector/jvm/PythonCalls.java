package penstock;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

import org.apache.spark.JobArtifactSet$;
import org.apache.spark.JobArtifactState;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.apache.spark.sql.classic.SparkSession;
import py4j.Gateway;
import py4j.PythonClient;
import scala.runtime.AbstractFunction0;

/**
 * Calls of Python from any number of threads. Py4J gives each thread that calls Python a connection and a thread of
 * Python, and keeps both when the thread has ended, and servers of Spark have a new thread for each query. So such a
 * thread calls through one of a few threads that stay, with what Spark knows by the thread.
 */
public class PythonCalls {
    private Gateway gateway;
    private final ThreadPoolExecutor threads = new ThreadPoolExecutor(
        0, Integer.MAX_VALUE, Long.MAX_VALUE, TimeUnit.NANOSECONDS, new SynchronousQueue(), new Daemons());

    public void setGateway(Gateway gateway) {
        this.gateway = gateway;
    }

    /** Call a method of a Python object. */
    public Object invoke(InvocationHandler python, Object proxy, Method method, Object[] arguments) throws Throwable {
        Object client = gateway.getCallbackClient();
        if (!(client instanceof PythonClient) || ((PythonClient) client).getPerThreadConnection() != null) {
            return python.invoke(proxy, method, arguments);
        }
        Call call = new Call(python, proxy, method, arguments);
        Future result = threads.submit(call);
        boolean isInterrupted = false;
        try {
            while (true) {
                try {
                    return result.get();
                } catch (InterruptedException interruption) {
                    isInterrupted = true;
                    call.interrupt();
                } catch (ExecutionException failure) {
                    throw failure.getCause();
                }
            }
        } finally {
            if (isInterrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private static class Call extends AbstractFunction0 implements Callable {
        private final InvocationHandler python;
        private final Object proxy;
        private final Method method;
        private final Object[] arguments;
        private final ClassLoader loader = Thread.currentThread().getContextClassLoader();
        private final scala.Option session = SparkSession.getActiveSession();
        private final scala.Option context = SparkContext$.MODULE$.getActive();
        private final scala.Option artifacts = JobArtifactSet$.MODULE$.getCurrentJobArtifactState();
        private final Properties properties = new Properties();
        private Thread worker;
        private boolean isInterrupted;

        Call(InvocationHandler python, Object proxy, Method method, Object[] arguments) {
            this.python = python;
            this.proxy = proxy;
            this.method = method;
            this.arguments = arguments;
            if (context.isDefined()) {
                properties.putAll(((SparkContext) context.get()).getLocalProperties());
            }
        }

        public Object call() throws Exception {
            begin(Thread.currentThread());
            try {
                return artifacts.isDefined()
                    ? JobArtifactSet$.MODULE$.withActiveJobArtifactState((JobArtifactState) artifacts.get(), this)
                    : apply();
            } finally {
                end();
            }
        }

        public Object apply() {
            try {
                return python.invoke(proxy, method, arguments);
            } catch (Throwable thrown) {
                org.apache.spark.unsafe.Platform.throwException(thrown);
                return null;
            }
        }

        private synchronized void begin(Thread thread) {
            worker = thread;
            if (isInterrupted) {
                thread.interrupt();
            }
            thread.setContextClassLoader(loader);
            if (context.isDefined()) {
                ((SparkContext) context.get()).setLocalProperties(properties);
            }
            if (session.isDefined()) {
                SparkSession.setActiveSession((SparkSession) session.get());
            } else {
                SparkSession.clearActiveSession();
            }
        }

        /** Leave nothing to the next call of this thread: no interruption, and no session that it would keep alive. */
        private synchronized void end() {
            worker = null;
            Thread.interrupted();
            SparkSession.clearActiveSession();
        }

        synchronized void interrupt() {
            isInterrupted = true;
            if (worker != null) {
                worker.interrupt();
            }
        }
    }

    private static class Daemons implements ThreadFactory {
        public Thread newThread(Runnable work) {
            Thread made = new Thread(work, "penstock-python-call");
            made.setDaemon(true);
            return made;
        }
    }
}
