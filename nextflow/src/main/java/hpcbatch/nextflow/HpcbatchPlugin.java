package hpcbatch.nextflow;

import nextflow.plugin.BasePlugin;
import org.pf4j.PluginWrapper;

/** What pf4j starts; the executor is found by META-INF/extensions.idx. */
public class HpcbatchPlugin extends BasePlugin {
    public HpcbatchPlugin(PluginWrapper wrapper) {
        super(wrapper);
    }
}
