package hpcbatch.nextflow;

import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import jdk.net.ExtendedSocketOptions;

/** HTTP/1.1 over a Unix socket: one request at a time. Not for several threads at once, but any thread may close it. */
class Connection implements AutoCloseable {
    /** The most that the address of a Unix socket holds (unix(7)), less the byte that ends it. */
    private static final int LONGEST_PATH = 107;

    record Answer(int status, byte[] body) {}

    private final SocketChannel channel;
    private final ByteBuffer received = ByteBuffer.allocate(1 << 16).flip();

    /** Throws IOException if nobody listens there, or if the listener is another user. */
    Connection(Path socket) throws IOException {
        channel = SocketChannel.open(StandardProtocolFamily.UNIX);
        try {
            connect(socket);
            String peer = channel.getOption(ExtendedSocketOptions.SO_PEERCRED).user().getName();
            String own = Files.getOwner(Path.of("/proc/self")).getName();
            // It would learn what the user's tasks are, and could answer anything.
            if (!peer.equals(own)) {
                throw new IOException("cannot use the socket " + socket + ": another user (" + peer + ") listens there");
            }
        } catch (IOException | RuntimeException error) {
            channel.close();
            throw error;
        }
    }

    private void connect(Path socket) throws IOException {
        if (socket.toString().getBytes(StandardCharsets.UTF_8).length <= LONGEST_PATH) {
            channel.connect(UnixDomainSocketAddress.of(socket));
            return;
        }
        Path folder = Files.createTempDirectory("nf-hpcbatch-");
        Path link = folder.resolve("home");
        try {
            Files.createSymbolicLink(link, socket.getParent());
            channel.connect(UnixDomainSocketAddress.of(link.resolve(socket.getFileName())));
        } finally {
            Files.deleteIfExists(link);
            Files.delete(folder);
        }
    }

    /** {@code body}: JSON, or null. Blocks until the answer is there. */
    Answer ask(String method, String target, byte[] body) throws IOException {
        String head = method + " " + target + " HTTP/1.1\r\nHost: engine\r\n"
            + (body == null ? "" : "Content-Type: application/json\r\nContent-Length: " + body.length + "\r\n") + "\r\n";
        try {
            send(head.getBytes(StandardCharsets.UTF_8));
            if (body != null) {
                send(body);
            }
        } catch (IOException broken) {
            // An engine that refuses a request before it has read all of it says why, and closes.
            try {
                return answer();
            } catch (IOException none) {
                throw broken;
            }
        }
        return answer();
    }

    private void send(byte[] bytes) throws IOException {
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        while (buffer.hasRemaining()) {
            channel.write(buffer);
        }
    }

    private Answer answer() throws IOException {
        String[] status = line().split(" ", 3);
        if (status.length < 2 || !status[0].startsWith("HTTP/1.")) {
            throw new IOException("the answer is not HTTP");
        }
        int length = -1;
        for (String line = line(); !line.isEmpty(); line = line()) {
            String[] field = line.split(":", 2);
            if (field[0].toLowerCase(Locale.ROOT).equals("content-length")) {
                length = Integer.parseInt(field[1].trim());
            }
        }
        if (length < 0) {
            throw new IOException("the answer has no length");
        }
        byte[] body = new byte[length];
        for (int at = 0; at < length; ) {
            need();
            int taken = Math.min(received.remaining(), length - at);
            received.get(body, at, taken);
            at += taken;
        }
        return new Answer(Integer.parseInt(status[1]), body);
    }

    private String line() throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        while (true) {
            need();
            byte next = received.get();
            if (next == '\n') {
                return line.toString(StandardCharsets.UTF_8).stripTrailing();
            }
            line.write(next);
        }
    }

    private void need() throws IOException {
        if (received.hasRemaining()) {
            return;
        }
        received.clear();
        int got = channel.read(received);
        received.flip();
        if (got < 0) {
            throw new EOFException("the engine closed the connection");
        }
    }

    @Override
    public void close() throws IOException {
        channel.close();
    }
}
