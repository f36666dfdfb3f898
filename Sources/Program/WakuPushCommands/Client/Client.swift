import ArgumentParser

struct Client: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "A client of push servers: registers, advertises, discovers and notifies.",
        discussion: """
            It attaches to the same Waku node as the server, or to the loopback relay of a `waku-push serve`. Answers count only when the server's \
            signature holds, and devices only when their owner's grant does.

            With --state DIR the client remembers: DIR has its key and its state, sealed with that key. One process uses it at a time. After \
            kill -9 the next command goes on where it was. It neither registers nor sends until register or notify, or client run, switches that on.

            Without --state a command asks one server one thing and forgets it: to try a server by hand. It watches the node's store for answers.

            EXAMPLES
              waku-push client register --state bob --server 0x04… \\
                --device-token 1a2b --apn-topic im.status.ethereum
              waku-push client run --state bob --json
              waku-push client discover --state alice 0x04…
              waku-push client notify --state alice 0x04… --chat family
              waku-push client status --state alice
              waku-push client unregister --state bob
              waku-push client query --server 0x04… --registrant 0x04…
              waku-push client listen --folder desktop --vapid BN…
              waku-push client v0.1 --help

            EXIT CODES
              0   done
              64  wrong usage
              65  refused by a server or not allowed; unusable key, state or advertisement
              69  no answer in time, no relay, or another process uses the folder
              73  the folder can't be made
              77  not allowed to use the folder, or others can read a file in it
            """,
        subcommands: [
            Run.self, Register.self, Discover.self, Notify.self, Listen.self, Status.self, Unregister.self, Query.self, ClientV01.self,
        ])
}
