"""Worlds of several machines that share one Redis or Valkey server. They need the package `redis`, and a server's binary."""
