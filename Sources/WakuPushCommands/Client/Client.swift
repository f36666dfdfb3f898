import ArgumentParser

struct Client: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Plays a client, to try a node by hand.",
        discussion: """
            It attaches to the same Waku node as the server, or to the loopback relay of a `waku-push serve`, and watches the node's store for answers. \
            Answers count only when the server's signature holds, and devices only when their owner's grant does.

            EXAMPLES
              waku-push client register --server 0x04… --identity bob.key \\
                --device-token 1a2b --apn-topic im.status.ethereum
              waku-push client query --server 0x04… --registrant 0x04…
              waku-push client notify --server 0x04… --registrant 0x04…
              waku-push client unregister --server 0x04… --identity bob.key \\
                --installation … --version 2
            """,
        subcommands: [Register.self, Unregister.self, Query.self, Notify.self, Run.self, Discover.self, Status.self])
}
