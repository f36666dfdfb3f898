import ArgumentParser
import Core
import LibP2P

/// Options for a node's part in a Waku network over libp2p.
struct PeerOptions: ParsableArguments {
    @Option(Settings.listen) var listen: [String]
    @Option(Settings.nodeKey) var nodeKey: String?
    @Option(Settings.exemptNetwork) var exemptNetwork: [String]

    /// The default address of the loopback relay.
    static let loopback = "/ip4/127.0.0.1/tcp/60000"

    /// - Parameter hasLoopback: whether the node runs the loopback relay.
    func addresses(hasLoopback: Bool) throws(CommandFailure) -> [Multiaddr] {
        if listen == ["off"] { return [] }
        return try (listen.isEmpty && hasLoopback ? [Self.loopback] : listen).map(Self.address)
    }

    static func address(_ text: String) throws(CommandFailure) -> Multiaddr {
        guard let address = try? Multiaddr(text), address.peerID == nil, case .address? = address.endpoint?.host else {
            throw CommandFailure(.usage, "--listen \(text) is not an address to listen on: give one such as /ip4/0.0.0.0/tcp/60000")
        }
        return address
    }

    /// The address ranges of ``exemptNetwork``.
    func exemptAddresses() throws(CommandFailure) -> [AddressRange] { try AddressRange.named(exemptNetwork, by: "exempt-network") }

    func keyFile(in folder: String) -> String {
        Settings.nodeKey.value(nodeKey) ?? folder + "/node.key"
    }
}

extension AddressRange {
    /// The ranges that an option names: `loopback`, `private`, or ranges such as 10.0.0.0/8.
    static func named(_ names: [String], by option: String) throws(CommandFailure) -> [AddressRange] {
        var ranges: [AddressRange] = []
        for name in names {
            switch name {
            case "loopback": ranges += loopback
            case "private": ranges += privateNetworks
            default:
                guard let range = AddressRange(name) else {
                    throw CommandFailure(
                        .usage, "--\(option) \(name) is not an address range: give loopback, private, or a range such as 10.0.0.0/8")
                }
                ranges.append(range)
            }
        }
        return ranges
    }
}
