import ArgumentParser
import LibP2P
import PushNode
import WakuP2P

/// How a node takes part in a Waku network over libp2p.
struct PeerOptions: ParsableArguments {
    @Option(
        help:
            "A multiaddr where other nodes may dial this one; repeat it for several. Without it the loopback relay alone listens: on \(Self.loopback). off: nowhere."
    )
    var listen: [String] = Environment.list("listen")

    @OptionGroup var network: NetworkOptions

    @Option(help: "File with the key that other nodes know this one by. Made when missing. [default: node.key in the data folder]")
    var nodeKey: String?

    @Option(
        help:
            "Peers that dial from here are not limited by /24 or /64, nor disconnected for others: loopback, private, or a range like 10.0.0.0/8; repeat it for several."
    )
    var exemptNetwork: [String] = Environment.list("exempt-network")

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

    /// Those of ``exemptNetwork``.
    func exemptAddresses() throws(CommandFailure) -> [AddressRange] {
        var ranges: [AddressRange] = []
        for name in exemptNetwork {
            switch name {
            case "loopback": ranges += AddressRange.loopback
            case "private": ranges += AddressRange.privateNetworks
            default:
                guard let range = AddressRange(name) else {
                    throw CommandFailure(
                        .usage, "--exempt-network \(name) is not a range of addresses: give loopback, private, or one like 10.0.0.0/8")
                }
                ranges.append(range)
            }
        }
        return ranges
    }

    func keyFile(in folder: String) -> String {
        nodeKey ?? Environment.string("node-key") ?? folder + "/node.key"
    }
}
