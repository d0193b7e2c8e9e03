def test_x(): import scrapy
