import NIOCore

/// The lifecycle of streams.
extension ConnectionHandler {
    func openStream(_ protocolIDs: [String], within limit: TimeAmount, _ promise: EventLoopPromise<PeerStream>) {
        guard connection != nil else { return promise.fail(ConnectionError.notConnected) }
        guard let id = session.open() else { return promise.fail(ConnectionError.tooManyStreams) }
        let negotiation = MultistreamNegotiation(proposing: protocolIDs)
        streams[id] = StreamEntry(
            StreamEntry.Negotiation(state: negotiation, deadline: promise.futureResult.eventLoop.now + limit, opener: promise))
        var opening = negotiation.opening
        _ = session.send(&opening, on: id)
        flush()
    }

    func accept(_ id: UInt32) {
        guard let connection, negotiatingCount < configuration.negotiatingStreamLimit else { return session.reset(id) }
        negotiatingCount += 1
        let negotiation = MultistreamNegotiation.responder()
        streams[id] = StreamEntry(
            StreamEntry.Negotiation(
                state: negotiation, deadline: connection.eventLoop.now + configuration.negotiationTimeout, opener: nil))
        var opening = negotiation.opening
        _ = session.send(&opening, on: id)
    }

    /// Looks at the deadlines of all streams. A timer for each would be cancelled at its end, which takes the event loop a search through the timers of
    /// all connections.
    func resetOverdueStreams() {
        guard let now = connection?.eventLoop.now else { return }
        for (id, entry) in streams where entry.deadline <= now { reset(id, .timedOut) }
    }

    func receive(_ data: ByteBuffer, on id: UInt32) {
        guard let entry = streams[id] else { return session.consumed(data.readableBytes, on: id) }
        switch entry.phase {
        case .open(let stream, _):
            if stream.deliver(data) {
                touched.append(id)
            } else {
                session.consumed(data.readableBytes, on: id)
            }
        case .negotiating(let negotiation):
            session.consumed(data.readableBytes, on: id)
            negotiate(entry, id: id, negotiation: negotiation, received: data)
        }
    }

    private func negotiate(_ entry: StreamEntry, id: UInt32, negotiation: StreamEntry.Negotiation, received data: ByteBuffer) {
        var negotiation = negotiation
        negotiation.received.writeImmutableBuffer(data)
        var answers = ByteBuffer()
        do {
            let agreed = try negotiation.state.receive(&negotiation.received, output: &answers, accepts: owner.isServed)
            // The answers are a few bytes. A peer whose window is smaller violates the protocol.
            guard answers.readableBytes <= session.sendWindow(id) else {
                throw ConnectionError.protocolViolation("no window for an answer")
            }
            _ = session.send(&answers, on: id)
            // Otherwise the lines that were read would stay in the buffer.
            negotiation.received.shrink()
            entry.phase = .negotiating(negotiation)
            if let agreed { start(entry, id: id, protocolID: agreed, after: negotiation) }
        } catch {
            session.reset(id)
            streamEnded(id, error)
        }
    }

    private func start(_ entry: StreamEntry, id: UInt32, protocolID: String, after negotiation: StreamEntry.Negotiation) {
        guard let connection else { return }
        let stream = PeerStream(id: id, protocolID: protocolID, isInbound: negotiation.opener == nil, connection: connection)
        // These bytes were counted as consumed on arrival: at most those of one read.
        stream.deliverUncounted(negotiation.received)
        entry.phase = .open(stream, nil)
        if let opener = negotiation.opener {
            opener.succeed(stream)
        } else {
            negotiatingCount -= 1
            guard let task = owner.start(stream) else { return reset(id, .tooManyStreams) }
            entry.phase = .open(stream, task)
        }
    }

    func streamFinished(_ id: UInt32) {
        guard let entry = streams[id] else { return }
        switch entry.phase {
        case .open(let stream, _):
            stream.finishInbound()
            touched.append(id)
            stream.wakeReader()
            dropIfOver(id, stream)
        case .negotiating:
            session.reset(id)
            streamEnded(id, ConnectionError.closedByPeer)
        }
    }

    func streamEnded(_ id: UInt32, _ error: any Error) {
        guard let entry = streams.removeValue(forKey: id) else { return }
        switch entry.phase {
        case .open(let stream, let task):
            stream.fail(error)
            task?.cancel()
        case .negotiating(let negotiation):
            if let opener = negotiation.opener { opener.fail(error) } else { negotiatingCount -= 1 }
        }
    }

    func reset(_ id: UInt32, _ reason: ConnectionError) {
        session.reset(id)
        countMemory()
        streamEnded(id, reason)
        flush()
    }

    /// Removes a stream that ended in both directions; its reader may still read received data.
    private func dropIfOver(_ id: UInt32, _ stream: PeerStream) {
        if stream.isOver { streams[id] = nil }
    }

    // MARK: Called for the streams

    func hasData(_ id: UInt32) {
        markReady(id)
        flush()
    }

    func consumed(_ count: Int, on id: UInt32) {
        session.consumed(count, on: id)
        countMemory()
        flush()
    }

    /// - Returns: Whether there is more to send and a window for it.
    func frameData(of entry: StreamEntry, _ id: UInt32) -> Bool {
        guard case .open(let stream, _) = entry.phase else { return false }
        let framed = stream.frameData(&session)
        if framed.isFinished {
            session.finish(id)
            dropIfOver(id, stream)
        }
        return framed.hasMore
    }
}
