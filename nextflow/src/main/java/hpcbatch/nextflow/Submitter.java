package hpcbatch.nextflow;

import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;

/** Submits of many processes in few messages: what comes while one message is on its way goes together in the next. */
class Submitter implements Runnable {
    /** Each has the environment of Nextflow, and a message is read as a whole. */
    private static final int MOST_OF_ONE_MESSAGE = 500;

    /** {@code answer}: the id, or what went wrong. */
    record Order(String key, Map<String, Object> task, CompletableFuture<String> answer) {}

    private final Engine engine;
    private final String client;
    private final Map<String, Object> surroundings;
    private final LinkedBlockingQueue<Order> waiting = new LinkedBlockingQueue<>();
    private final AtomicInteger unanswered = new AtomicInteger();

    /** {@code surroundings}: what each submit says beside its tasks. */
    Submitter(Engine engine, String client, Map<String, Object> surroundings) {
        this.engine = engine;
        this.client = client;
        this.surroundings = surroundings;
    }

    /** The same key again gives the same task. */
    CompletableFuture<String> submit(String key, Map<String, Object> task) {
        Order order = new Order(key, task, new CompletableFuture<>());
        unanswered.incrementAndGet();
        order.answer.whenComplete((id, error) -> unanswered.decrementAndGet());
        waiting.add(order);
        return order.answer;
    }

    boolean isDone() {
        return unanswered.get() == 0;
    }

    @Override
    public void run() {
        List<Order> orders = new ArrayList<>();
        try {
            while (!engine.isStopping()) {
                orders.clear();
                orders.add(waiting.take());
                waiting.drainTo(orders, MOST_OF_ONE_MESSAGE - 1);
                send(orders);
            }
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
        }
    }

    private void send(List<Order> orders) {
        List<Map<String, Object>> submits = new ArrayList<>();
        for (Order order : orders) {
            Map<String, Object> submit = new LinkedHashMap<>(surroundings);
            submit.put("client", client);
            submit.put("key", order.key);
            submit.put("tasks", List.of(order.task));
            submits.add(submit);
        }
        try {
            List<?> answers = (List<?>) engine.post("/v1/submits", Map.of("submits", submits)).get("answers");
            for (int at = 0; at < orders.size(); at++) {
                take(orders.get(at), Program.asMap(answers.get(at)));
            }
        } catch (IOException | RuntimeException error) {
            for (Order order : orders) {
                order.answer.completeExceptionally(error);
            }
        }
    }

    private void take(Order order, Map<String, Object> answer) {
        if (answer.get("ids") instanceof List<?> ids) {
            order.answer.complete((String) ids.get(0));
        } else if (answer.get("status") instanceof Integer status && status == 503) {
            waiting.add(order);
        } else {
            order.answer.completeExceptionally(
                new Refused(((Number) answer.get("status")).intValue(), String.valueOf(answer.get("error"))));
        }
    }
}
