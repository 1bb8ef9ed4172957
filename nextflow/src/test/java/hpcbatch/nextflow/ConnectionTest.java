package hpcbatch.nextflow;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ConnectionTest {
    @TempDir
    Path folder;

    /** Answers one client with these pieces, and gives what that has sent at first. */
    private CompletableFuture<String> serve(Path socket, String... pieces) throws IOException {
        ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        server.bind(UnixDomainSocketAddress.of(socket));
        return CompletableFuture.supplyAsync(() -> {
            try (server; SocketChannel client = server.accept()) {
                ByteBuffer heard = ByteBuffer.allocate(4096);
                client.read(heard);
                for (String piece : pieces) {
                    client.write(ByteBuffer.wrap(piece.getBytes(StandardCharsets.UTF_8)));
                    Thread.sleep(20);
                }
                return new String(heard.array(), 0, heard.position(), StandardCharsets.UTF_8);
            } catch (IOException | InterruptedException error) {
                throw new IllegalStateException(error);
            }
        });
    }

    @Test
    void anAnswerMayComeInPieces() throws Exception {
        Path socket = folder.resolve("s");
        CompletableFuture<String> heard = serve(socket, "HTTP/1.1 200 OK\r\nConte", "nt-Length: 11\r\n\r\n{\"a\"", ": \"ä\"}");
        try (Connection connection = new Connection(socket)) {
            Connection.Answer answer = connection.ask("POST", "/v1/tasks", "{}".getBytes(StandardCharsets.UTF_8));
            assertEquals(200, answer.status());
            assertEquals("{\"a\": \"ä\"}", new String(answer.body(), StandardCharsets.UTF_8));
        }
        assertEquals("POST /v1/tasks HTTP/1.1", heard.get().lines().findFirst().orElseThrow());
    }

    @Test
    void anEngineThatGoesIsAnError() throws Exception {
        Path socket = folder.resolve("s");
        serve(socket, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{");
        try (Connection connection = new Connection(socket)) {
            assertThrows(IOException.class, () -> connection.ask("GET", "/", null));
        }
        assertThrows(IOException.class, () -> new Connection(folder.resolve("nobody")));
    }

    @Test
    void aLongPathIsReached() throws Exception {
        Path deep = folder.resolve("d".repeat(120));
        Files.createDirectory(deep);
        Path near = Files.createSymbolicLink(folder.resolve("n"), deep);
        serve(near.resolve("s"), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
        try (Connection connection = new Connection(deep.resolve("s"))) {
            assertEquals(200, connection.ask("GET", "/", null).status());
        }
    }
}
