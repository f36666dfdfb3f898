/// Why no node was found in the lists of nodes, and the remedy: one phrase for an operator.
enum NodeListProblem {
    /// - Parameters:
    ///   - dns: the latest failure of a look-up; nil if all were answered.
    ///   - list: the reasons why entries can't be used.
    static func text(dns: DNSClient.Failure?, list: some Collection<ENRError>) -> String {
        switch dns {
        case .truncated: "the DNS server cuts large answers off: set --dns to one that passes them over UDP"
        case .timedOut: "the DNS server does not answer: check the network and the firewall, or set another with --dns"
        case .unreachable: "the DNS server can't be reached: check its address, or set another with --dns"
        case .refused(let code): "the DNS server answers with error \(code): set another with --dns"
        case .malformed: "the DNS server answers with malformed records: set another with --dns"
        case .noServer: "no DNS server is configured: see /etc/resolv.conf, or set one with --dns"
        case nil where list.contains(.badSignature):
            "a list of nodes is not signed with the key of its address, or older than one seen before: check the address of --fleet"
        case nil: "there is no list of nodes at that name, or it can't be used: check the address of --fleet"
        }
    }
}
