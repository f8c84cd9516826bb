import java.util.HashMap;
import java.util.Map;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.rest.RESTCatalogServer;
import org.apache.paimon.rest.auth.BearTokenAuthProvider;
import org.apache.paimon.rest.responses.ConfigResponse;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.TextNode;

/** The REST catalog of the reference's own tests, in this process, on loopback. */
final class RestServer {
    private static final Map<String, RESTCatalogServer> SERVERS = new HashMap<>();

    /**
     * Start a server for the directory {@code data}, or change one: {@code forbid} a table, or {@code lose} the answer
     * of the next commit. The catalog is called {@code name}, and {@code token} is what clients have to show.
     */
    static JsonNode start(JsonNode request) throws Exception {
        String data = request.get("data").asText();
        RESTCatalogServer server = SERVERS.get(data);
        if (server == null) {
            Map<String, String> defaults = new HashMap<>();
            defaults.put("prefix", "penstock-test");
            server = new RESTCatalogServer(
                    data,
                    new BearTokenAuthProvider(request.get("token").asText()),
                    new ConfigResponse(defaults, new HashMap<>()),
                    request.get("name").asText());
            server.start();
            SERVERS.put(data, server);
        }
        if (request.has("forbid")) server.addNoPermissionTable(Identifier.fromString(request.get("forbid").asText()));
        if (request.has("lose")) RESTCatalogServer.commitSuccessThrowException = true;
        return TextNode.valueOf(server.getUrl());
    }

    private RestServer() {}
}
