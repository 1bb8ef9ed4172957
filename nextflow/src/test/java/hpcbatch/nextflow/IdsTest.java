package hpcbatch.nextflow;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

class IdsTest {
    @Test
    void neighboursAreToldTogether() {
        assertEquals(List.of("12"), Ids.each("12"));
        assertEquals(List.of("12.3"), Ids.each("12.3"));
        assertEquals(List.of("12.9", "12.10", "12.11"), Ids.each("12.9-11"));
    }
}
