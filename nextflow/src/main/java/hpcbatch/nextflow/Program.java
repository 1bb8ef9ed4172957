package hpcbatch.nextflow;

import groovy.json.JsonSlurper;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The program {@code hpcbatch}: starts the engine, and reads what only it has a reader for. */
class Program {
    private final String name;

    /** {@code named}: its path, or null for HPCBATCH_PROGRAM or the one in PATH. */
    Program(String named) {
        String variable = System.getenv("HPCBATCH_PROGRAM");
        name = named != null ? named : variable != null && !variable.isEmpty() ? variable : "hpcbatch";
    }

    /** Starts the user's engine if none runs. Returns its socket. */
    Path startEngine() throws IOException {
        run(List.of("engine", "start", "--until-idle"));
        return Path.of((String) json(run(List.of("engine", "status", "--json"))).get("socket"));
    }

    /** What a submit from this process says beside its tasks: environment, umask, the task in which it runs. */
    Map<String, Object> surroundings() throws IOException {
        Map<String, Object> request = json(run(List.of("submit", "--print-request", "--", "true")));
        request.keySet().removeAll(List.of("tasks", "client", "key", "directory"));
        return request;
    }

    /** The keys of a task that stand for options of sbatch. Throws IOException with the sentence for one that is refused. */
    Map<String, Object> keysOf(String sbatchOptions) throws IOException {
        Path script = Files.createTempFile("clusterOptions-", ".sh");
        try {
            Files.writeString(script, "#!/bin/sh\n#SBATCH " + sbatchOptions.replace('\n', ' ') + "\ntrue\n");
            Map<String, Object> request = json(run(List.of("submit", "--print-request", script.toString())));
            return TaskKeys.ofOptions(asMap(((List<?>) request.get("tasks")).get(0)));
        } catch (IOException error) {
            // They stand in no file of the user's.
            throw new IOException(error.getMessage().replaceFirst("^\\Q" + script + "\\E(:\\d+)?: ", ""), error);
        } finally {
            Files.delete(script);
        }
    }

    private String run(List<String> words) throws IOException {
        List<String> command = new ArrayList<>(List.of(name));
        command.addAll(words);
        Path errors = Files.createTempFile("nf-hpcbatch-", ".err");
        try {
            Process process = new ProcessBuilder(command).redirectError(errors.toFile())
                .redirectInput(Path.of("/dev/null").toFile()).start();
            String printed = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            if (process.waitFor() == 0) {
                return printed;
            }
            String said = Files.readString(errors).strip().replaceFirst("^hpcbatch: ", "");
            throw new IOException(said.isEmpty() ? String.join(" ", command) + " failed" : said);
        } catch (InterruptedException interrupt) {
            Thread.currentThread().interrupt();
            throw new IOException(name + " was interrupted", interrupt);
        } catch (IOException error) {
            if (error.getMessage().contains("Cannot run program")) {
                throw new IOException("cannot start the program " + name
                    + ": put hpcbatch in PATH, or name it in HPCBATCH_PROGRAM", error);
            }
            throw error;
        } finally {
            Files.delete(errors);
        }
    }

    private static Map<String, Object> json(String text) {
        return asMap(new JsonSlurper().parseText(text));
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> asMap(Object value) {
        return (Map<String, Object>) value;
    }
}
