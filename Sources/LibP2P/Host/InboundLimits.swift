/// Whether another connection from outside is let in, before anything is read from it. Pure.
struct InboundLimits {
    let total: Int
    let perAddress: Int
    let handshakes: Int

    private var byAddress: [String: Int] = [:]
    private(set) var count = 0
    private(set) var handshakeCount = 0

    init(total: Int, perAddress: Int, handshakes: Int) {
        self.total = total
        self.perAddress = perAddress
        self.handshakes = handshakes
    }

    mutating func admit(_ address: String) -> Bool {
        guard count < total, handshakeCount < handshakes, byAddress[address, default: 0] < perAddress else { return false }
        count += 1
        handshakeCount += 1
        byAddress[address, default: 0] += 1
        return true
    }

    /// It was secured, or ended before it was.
    mutating func handshakeEnded() {
        handshakeCount -= 1
    }

    mutating func left(_ address: String) {
        count -= 1
        let rest = byAddress[address, default: 1] - 1
        byAddress[address] = rest > 0 ? rest : nil
    }
}
