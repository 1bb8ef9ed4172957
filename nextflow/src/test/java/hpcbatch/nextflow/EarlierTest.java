package hpcbatch.nextflow;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.common.hash.HashCode;
import java.nio.file.Path;
import java.util.List;
import nextflow.util.HashBuilder;
import org.junit.jupiter.api.Test;

class EarlierTest {
    private static String next(String hash, int tries) {
        return HashBuilder.defaultHasher().putBytes(HashCode.fromString(hash).asBytes()).putInt(tries).hash().toString();
    }

    @Test
    void aFolderIsCalledByItsHash() {
        assertEquals("0123456789abcdef0123456789abcdef", Earlier.hashOf(Path.of("/w/work/01/23456789abcdef0123456789abcdef")));
        assertEquals("", Earlier.hashOf(Path.of("/home/me")));
        assertEquals("", Earlier.hashOf(Path.of("/")));
    }

    @Test
    void theChainLeadsToTheFoldersOfLaterRuns() {
        String first = "0123456789abcdef0123456789abcdef";
        List<String> chain = Earlier.chainFrom(first);
        String second = next(first, 2);
        assertTrue(chain.contains(second));
        assertTrue(chain.contains(next(second, 3)), "it was broken off twice");
        assertTrue(chain.contains(next(first, 3)), "its first folder was another's second");
        assertFalse(chain.contains(first));
        assertTrue(Earlier.chainFrom("").isEmpty());
    }
}
