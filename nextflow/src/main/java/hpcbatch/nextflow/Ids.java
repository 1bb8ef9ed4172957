package hpcbatch.nextflow;

import java.util.ArrayList;
import java.util.List;

/** Ids of tasks: {@code 12}, {@code 12.3} of an array, {@code 12.3-7} for neighbours. */
final class Ids {
    private Ids() {}

    /** Each task of neighbours that the feed tells together. */
    static List<String> each(String id) {
        int dot = id.indexOf('.');
        int dash = id.indexOf('-', dot + 1);
        if (dot < 0 || dash < 0) {
            return List.of(id);
        }
        List<String> found = new ArrayList<>();
        int last = Integer.parseInt(id.substring(dash + 1));
        for (int index = Integer.parseInt(id.substring(dot + 1, dash)); index <= last; index++) {
            found.add(of(id.substring(0, dot), index));
        }
        return found;
    }

    /** {@code index}: from 1. */
    static String of(String array, int index) {
        return array + "." + index;
    }
}
