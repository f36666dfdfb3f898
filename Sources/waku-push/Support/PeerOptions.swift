import ArgumentParser
import LibP2P

/// How a node takes part in a Waku network over libp2p.
struct PeerOptions: ParsableArguments {
    @Option(
        help:
            "A multiaddr where other nodes may dial this one; repeat it for several. Without it the loopback relay alone listens: on \(Self.loopback). off: nowhere."
    )
    var listen: [String] = Environment.list("listen")

    @Option(help: "File with the key that other nodes know this one by. Made when missing. [default: node.key in the data folder]")
    var nodeKey: String?

    /// Where the loopback relay listens unless it is told otherwise.
    static let loopback = "/ip4/127.0.0.1/tcp/60000"

    /// - Parameter hasLoopback: Whether the node has a network of its own.
    func addresses(hasLoopback: Bool) throws(CommandFailure) -> [Multiaddr] {
        if listen == ["off"] { return [] }
        var addresses: [Multiaddr] = []
        for text in listen.isEmpty && hasLoopback ? [Self.loopback] : listen {
            guard let address = try? Multiaddr(text), address.peerID == nil, case .address? = address.endpoint?.host else {
                throw CommandFailure(.usage, "--listen \(text) is not an address to listen on: give one like /ip4/0.0.0.0/tcp/60000")
            }
            addresses.append(address)
        }
        return addresses
    }

    func keyFile(in folder: String) -> String {
        nodeKey ?? Environment.string("node-key") ?? folder + "/node.key"
    }
}
